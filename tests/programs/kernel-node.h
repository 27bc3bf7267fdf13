// A kernel node with one thread, with the kernel's arguments.
#pragma once

#include <initializer_list>

#include "program.h"

template <typename... Arguments>
cudaGraphNode_t addKernel(cudaGraph_t graph, std::initializer_list<cudaGraphNode_t> before, void (*function)(Arguments...),
                          Arguments... arguments) {
  void* pointers[] = {&arguments..., nullptr};
  cudaKernelNodeParams params{};
  params.func = reinterpret_cast<void*>(function);
  params.gridDim = params.blockDim = dim3(1);
  params.kernelParams = pointers;
  cudaGraphNode_t node = nullptr;
  CHECK(cudaGraphAddKernelNode(&node, graph, before.begin(), before.size(), &params));
  return node;
}
