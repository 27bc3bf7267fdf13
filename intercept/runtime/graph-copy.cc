// Copy nodes: of boxes, of linear memory, and to and from the program's variables.
#include "intercept/runtime/copy.h"
#include "intercept/runtime/graph-node.h"

namespace vgpu::runtime {
namespace {

template <class Node>
cudaError_t box(const cudaMemcpy3DParms* parameters, Node node) {
  return withParameters<CUDA_MEMCPY3D>(parameters, node);
}

template <class Node>
cudaError_t plain(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, Node node) {
  PlainCopy copy{to, from, bytes, kind};
  return withParameters<CUDA_MEMCPY3D>(&copy, node);
}

template <class Node>
cudaError_t toSymbol(const void* symbol, const void* from, size_t bytes, size_t offset, cudaMemcpyKind kind,
                     Node node) {
  void* part;
  if (cudaError_t error = getPart(symbol, offset, bytes, part); error != cudaSuccess) return error;
  return reachesDevice(kind, cudaMemcpyHostToDevice) ? plain(part, from, bytes, kind, node) : cudaErrorInvalidMemcpyDirection;
}

template <class Node>
cudaError_t fromSymbol(void* to, const void* symbol, size_t bytes, size_t offset, cudaMemcpyKind kind, Node node) {
  void* part;
  if (cudaError_t error = getPart(symbol, offset, bytes, part); error != cudaSuccess) return error;
  return reachesDevice(kind, cudaMemcpyDeviceToHost) ? plain(to, part, bytes, kind, node) : cudaErrorInvalidMemcpyDirection;
}

// The three uses of a copy's description: adding a node, setting its parameters, setting them in an executable graph.
auto adding(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies, size_t count) {
  return [=](const CUDA_MEMCPY3D& copy) {
    return cuGraphAddMemcpyNode(node, graph, dependencies, count, &copy, thread.context);
  };
}
auto setting(cudaGraphNode_t node) {
  return [=](const CUDA_MEMCPY3D& copy) { return cuGraphMemcpyNodeSetParams(node, &copy); };
}
auto setting(cudaGraphExec_t executable, cudaGraphNode_t node) {
  return [=](const CUDA_MEMCPY3D& copy) {
    return cuGraphExecMemcpyNodeSetParams(executable, node, &copy, thread.context);
  };
}

CUresult readBox(cudaGraphNode_t node, cudaMemcpy3DParms* parameters) {
  CUDA_MEMCPY3D copy;
  if (parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = cuGraphMemcpyNodeGetParams(node, &copy);
  if (result == CUDA_SUCCESS) *parameters = parametersOf(copy);
  return result;
}

}  // namespace
}  // namespace vgpu::runtime

using namespace vgpu::runtime;

RUNTIME(cudaGraphAddMemcpyNode,
        (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t* dependencies, size_t count,
         const cudaMemcpy3DParms* parameters),
        box(parameters, adding(node, graph, dependencies, count)))
RUNTIME(cudaGraphAddMemcpyNode1D,
        (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t* dependencies, size_t count, void* to,
         const void* from, size_t bytes, cudaMemcpyKind kind),
        plain(to, from, bytes, kind, adding(node, graph, dependencies, count)))
RUNTIME(cudaGraphAddMemcpyNodeToSymbol,
        (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t* dependencies, size_t count,
         const void* symbol, const void* from, size_t bytes, size_t offset, cudaMemcpyKind kind),
        toSymbol(symbol, from, bytes, offset, kind, adding(node, graph, dependencies, count)))
RUNTIME(cudaGraphAddMemcpyNodeFromSymbol,
        (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t* dependencies, size_t count, void* to,
         const void* symbol, size_t bytes, size_t offset, cudaMemcpyKind kind),
        fromSymbol(to, symbol, bytes, offset, kind, adding(node, graph, dependencies, count)))

RUNTIME(cudaGraphMemcpyNodeGetParams, (cudaGraphNode_t node, cudaMemcpy3DParms* parameters), readBox(node, parameters))
RUNTIME(cudaGraphMemcpyNodeSetParams, (cudaGraphNode_t node, const cudaMemcpy3DParms* parameters),
        box(parameters, setting(node)))
RUNTIME(cudaGraphMemcpyNodeSetParams1D,
        (cudaGraphNode_t node, void* to, const void* from, size_t bytes, cudaMemcpyKind kind),
        plain(to, from, bytes, kind, setting(node)))
RUNTIME(cudaGraphMemcpyNodeSetParamsToSymbol,
        (cudaGraphNode_t node, const void* symbol, const void* from, size_t bytes, size_t offset, cudaMemcpyKind kind),
        toSymbol(symbol, from, bytes, offset, kind, setting(node)))
RUNTIME(cudaGraphMemcpyNodeSetParamsFromSymbol,
        (cudaGraphNode_t node, void* to, const void* symbol, size_t bytes, size_t offset, cudaMemcpyKind kind),
        fromSymbol(to, symbol, bytes, offset, kind, setting(node)))

RUNTIME(cudaGraphExecMemcpyNodeSetParams,
        (cudaGraphExec_t executable, cudaGraphNode_t node, const cudaMemcpy3DParms* parameters),
        box(parameters, setting(executable, node)))
RUNTIME(cudaGraphExecMemcpyNodeSetParams1D,
        (cudaGraphExec_t executable, cudaGraphNode_t node, void* to, const void* from, size_t bytes,
         cudaMemcpyKind kind),
        plain(to, from, bytes, kind, setting(executable, node)))
RUNTIME(cudaGraphExecMemcpyNodeSetParamsToSymbol,
        (cudaGraphExec_t executable, cudaGraphNode_t node, const void* symbol, const void* from, size_t bytes,
         size_t offset, cudaMemcpyKind kind),
        toSymbol(symbol, from, bytes, offset, kind, setting(executable, node)))
RUNTIME(cudaGraphExecMemcpyNodeSetParamsFromSymbol,
        (cudaGraphExec_t executable, cudaGraphNode_t node, void* to, const void* symbol, size_t bytes, size_t offset,
         cudaMemcpyKind kind),
        fromSymbol(to, symbol, bytes, offset, kind, setting(executable, node)))
