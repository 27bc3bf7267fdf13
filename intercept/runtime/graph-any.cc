// Nodes of any type through one structure: a union in which the runtime's kernel, copy, fill and condition parameters differ from the
// driver's.
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>

#include "intercept/runtime/graph-node.h"

namespace vgpu::runtime {
namespace {

static_assert(sizeof(cudaGraphNodeParams) == sizeof(CUgraphNodeParams));

cudaError_t kernel(const cudaGraphNodeParams& from, CUgraphNodeParams& to) {
  const cudaKernelNodeParamsV2& k = from.kernel;
  cudaKernelNodeParams plain = {k.func, k.gridDim, k.blockDim, k.sharedMemBytes, k.kernelParams, k.extra};
  CUDA_KERNEL_NODE_PARAMS driver;
  cudaError_t error = toDriver(&plain, driver);
  static_assert(sizeof driver == sizeof to.kernel);
  if (error == cudaSuccess) memcpy(&to.kernel, &driver, sizeof driver);
  return error;
}

cudaError_t copy(const cudaGraphNodeParams& from, CUgraphNodeParams& to) {
  to.memcpy.flags = from.memcpy.flags;
  to.memcpy.copyCtx = thread.context;
  return toDriver(&from.memcpy.copyParams, to.memcpy.copyParams);
}

/// The size of the parameters of a type that differs between the two interfaces; the driver checks the other types.
size_t bytesOf(const cudaGraphNodeParams& p) {
  switch (p.type) {
    case cudaGraphNodeTypeKernel: return sizeof p.kernel;
    case cudaGraphNodeTypeMemcpy: return sizeof p.memcpy;
    case cudaGraphNodeTypeMemset: return sizeof p.memset;
    case cudaGraphNodeTypeConditional: return sizeof p.conditional;
    default: return sizeof p.reserved1;
  }
}

/// Whether a reserved field, which a program must leave 0, is set.
bool isReserved(const cudaGraphNodeParams& p) {
  auto isSet = [](auto each) { return each != decltype(each){}; };
  const bool isCopy = p.type == cudaGraphNodeTypeMemcpy && (p.memcpy.flags != 0 || std::ranges::any_of(p.memcpy.reserved, isSet));
  return isCopy || p.reserved2 != 0 || std::ranges::any_of(p.reserved0, isSet) ||
         std::ranges::any_of(std::as_bytes(std::span(p.reserved1)).subspan(bytesOf(p)), isSet);
}

/// Copies the bytes for every type whose parameters are the same in both interfaces.
cudaError_t toDriver(const cudaGraphNodeParams& from, CUgraphNodeParams& to) {
  if (isReserved(from)) return cudaErrorInvalidValue;
  memset(&to, 0, sizeof to);
  to.type = static_cast<CUgraphNodeType>(from.type);
  switch (from.type) {
    case cudaGraphNodeTypeKernel:
      return kernel(from, to);
    case cudaGraphNodeTypeMemcpy:
      return copy(from, to);
    case cudaGraphNodeTypeMemset:
      memcpy(&to.memset, &from.memset, sizeof from.memset);
      to.memset.ctx = thread.context;
      return cudaSuccess;
    case cudaGraphNodeTypeConditional:
      to.conditional.handle = from.conditional.handle;
      to.conditional.type = static_cast<CUgraphConditionalNodeType>(from.conditional.type);
      to.conditional.size = from.conditional.size;
      to.conditional.ctx = thread.context;
      return cudaSuccess;
    default:
      memcpy(&to.reserved1, &from.reserved1, sizeof to.reserved1);
      return cudaSuccess;
  }
}

/// Copies the driver's outputs back into the program's structure: the address of an allocation, the graphs of a condition.
void readBack(const CUgraphNodeParams& from, cudaGraphNodeParams& to) {
  if (to.type == cudaGraphNodeTypeMemAlloc) to.alloc.dptr = toPointer(from.alloc.dptr);
  if (to.type == cudaGraphNodeTypeConditional) to.conditional.phGraph_out = from.conditional.phGraph_out;
}

template <class Use>
cudaError_t withNode(cudaGraphNodeParams* parameters, Use use) {
  CUgraphNodeParams driver;
  if (parameters == nullptr) return cudaErrorInvalidValue;
  if (cudaError_t error = toDriver(*parameters, driver); error != cudaSuccess) return error;
  CUresult result = use(&driver);
  if (result == CUDA_SUCCESS) readBack(driver, *parameters);
  return answer(result);
}

}  // namespace
}  // namespace vgpu::runtime

using namespace vgpu::runtime;

RUNTIME(cudaGraphAddNode,
        (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t* dependencies, const cudaGraphEdgeData* edges,
         size_t count, cudaGraphNodeParams* parameters),
        withNode(parameters, [&](CUgraphNodeParams* p) {
          return cuGraphAddNode(node, graph, dependencies, same<CUgraphEdgeData>(edges), count, p);
        }))
RUNTIME(cudaGraphNodeSetParams, (cudaGraphNode_t node, cudaGraphNodeParams* parameters),
        withNode(parameters, [&](CUgraphNodeParams* p) { return cuGraphNodeSetParams(node, p); }))
RUNTIME(cudaGraphExecNodeSetParams, (cudaGraphExec_t executable, cudaGraphNode_t node, cudaGraphNodeParams* parameters),
        withNode(parameters, [&](CUgraphNodeParams* p) { return cuGraphExecNodeSetParams(executable, node, p); }))
