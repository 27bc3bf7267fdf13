// Modules with a kernel that stores a number, and executable graphs with one such kernel.
#pragma once

#include <string>

#include "driver-entry.h"

// A kernel that stores a number; the module has no variables.
inline std::string imageOf(int number) {
  return ".version 7.0\n.target sm_70\n.address_size 64\n"
         ".visible .entry store(.param .u64 out) {\n"
         "  .reg .u64 %a;\n  .reg .u32 %v;\n"
         "  ld.param.u64 %a, [out];\n  cvta.to.global.u64 %a, %a;\n  mov.u32 %v, " +
         std::to_string(number) + ";\n  st.global.u32 [%a], %v;\n  ret;\n}\n";
}

struct Module {
  explicit Module(int number) {
    CALL(cuModuleLoadData, &handle, imageOf(number).c_str());
    CALL(cuModuleGetFunction, &store, handle, "store");
  }
  CUmodule handle;
  CUfunction store;
};

struct Graph {
  explicit Graph(const Module& module) {
    const CUDA_KERNEL_NODE_PARAMS kernel = kernelOf(module);
    CALL(cuGraphCreate, &graph, 0);
    CALL(cuGraphAddKernelNode, &node, graph, nullptr, 0, &kernel);
    CALL(cuGraphInstantiateWithFlags, &exec, graph, 0);
  }
  ~Graph() {
    CALL(cuGraphExecDestroy, exec);
    CALL(cuGraphDestroy, graph);
  }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  void set(const Module& module) {
    const CUDA_KERNEL_NODE_PARAMS kernel = kernelOf(module);
    CALL(cuGraphExecKernelNodeSetParams, exec, node, &kernel);
  }
  CUresult enable(bool isEnabled) { return DRIVER(cuGraphNodeSetEnabled)(exec, node, isEnabled); }
  bool stores(int number) {
    out.upload({0});
    CALL(cuGraphLaunch, exec, nullptr);
    CHECK(cudaDeviceSynchronize());
    return same("of a graph", out.download(), {number});
  }

 private:
  CUDA_KERNEL_NODE_PARAMS kernelOf(const Module& module) {
    CUDA_KERNEL_NODE_PARAMS kernel{};
    kernel.func = module.store;
    kernel.gridDimX = kernel.gridDimY = kernel.gridDimZ = kernel.blockDimX = kernel.blockDimY = kernel.blockDimZ = 1;
    kernel.kernelParams = arguments;
    return kernel;
  }

  DeviceArray<int> out{1};
  int* address = out;
  void* arguments[1] = {&address};
  CUgraph graph;
  CUgraphNode node;
  CUgraphExec exec;
};
