#include "intercept/session/graph/node-request.h"

#include <algorithm>
#include <cstddef>
#include <span>

namespace vgpu::client {

namespace {

// A request from parameters of one type, converted to the structure for all types; without the context.
template <typename Params, typename Fill>
NodeRequest request(CUgraphNodeType type, const Params* params, Fill&& fill) {
  NodeRequest made;
  made.params.type = type;
  made.given = params != nullptr;
  if (made.given) fill(made.params, *params);
  return made;
}

// The size of the parameters of one type in the structure for all types.
size_t bytesOf(const CUgraphNodeParams& params) {
  switch (params.type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: return sizeof params.kernel;
    case CU_GRAPH_NODE_TYPE_MEMCPY: return sizeof params.memcpy;
    case CU_GRAPH_NODE_TYPE_MEMSET: return sizeof params.memset;
    case CU_GRAPH_NODE_TYPE_HOST: return sizeof params.host;
    case CU_GRAPH_NODE_TYPE_GRAPH: return sizeof params.graph;
    case CU_GRAPH_NODE_TYPE_EMPTY: return 0;
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT: return sizeof params.eventWait;
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD: return sizeof params.eventRecord;
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC: return sizeof params.alloc;
    case CU_GRAPH_NODE_TYPE_MEM_FREE: return sizeof params.free;
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP: return sizeof params.memOp;
    case CU_GRAPH_NODE_TYPE_CONDITIONAL: return sizeof params.conditional;
    default: return sizeof params.reserved1;
  }
}

// cuda.h: reserved fields, and bytes after the parameters of the type, must be 0.
bool hasUnknown(const CUgraphNodeParams& params) {
  auto isSet = [](auto each) { return each != 0; };
  auto rest = std::as_bytes(std::span(params.reserved1)).subspan(bytesOf(params));
  const bool isCopy = params.type == CU_GRAPH_NODE_TYPE_MEMCPY && (params.memcpy.flags != 0 || params.memcpy.reserved != 0);
  return isCopy || params.reserved2 != 0 || std::ranges::any_of(params.reserved0, isSet) ||
         std::ranges::any_of(rest, [](std::byte each) { return each != std::byte{}; });
}

}  // namespace

NodeRequest requestOf(const CUDA_KERNEL_NODE_PARAMS_v1* params) {
  return request(CU_GRAPH_NODE_TYPE_KERNEL, params, [](CUgraphNodeParams& to, auto& p) {
    to.kernel = {p.func,      p.gridDimX,  p.gridDimY,       p.gridDimZ,     p.blockDimX, p.blockDimY,
                 p.blockDimZ, p.sharedMemBytes, p.kernelParams, p.extra, nullptr,      nullptr};
  });
}
NodeRequest requestOf(const CUDA_KERNEL_NODE_PARAMS* params) {
  return request(CU_GRAPH_NODE_TYPE_KERNEL, params, [](CUgraphNodeParams& to, auto& p) {
    to.kernel = {p.func,      p.gridDimX,  p.gridDimY,       p.gridDimZ,     p.blockDimX, p.blockDimY,
                 p.blockDimZ, p.sharedMemBytes, p.kernelParams, p.extra, p.kern,      p.ctx};
  });
}
NodeRequest requestOf(const CUDA_MEMCPY3D* params) {
  return request(CU_GRAPH_NODE_TYPE_MEMCPY, params, [](CUgraphNodeParams& to, auto& p) { to.memcpy.copyParams = p; });
}
NodeRequest requestOf(const CUDA_MEMSET_NODE_PARAMS* params) {
  return request(CU_GRAPH_NODE_TYPE_MEMSET, params, [](CUgraphNodeParams& to, auto& p) {
    to.memset = {p.dst, p.pitch, p.value, p.elementSize, p.width, p.height, nullptr};
  });
}
NodeRequest requestOf(const CUDA_HOST_NODE_PARAMS* params) {
  return request(CU_GRAPH_NODE_TYPE_HOST, params, [](CUgraphNodeParams& to, auto& p) {
    to.host.fn = p.fn;
    to.host.userData = p.userData;
  });
}
NodeRequest requestOf(const CUDA_BATCH_MEM_OP_NODE_PARAMS* params) {
  return request(CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, params, [](CUgraphNodeParams& to, auto& p) {
    to.memOp = {p.ctx, p.count, p.paramArray, p.flags};
  });
}
NodeRequest requestOf(CUgraphNodeParams* params) {
  if (params == nullptr || hasUnknown(*params)) return {.given = false};
  return {*params, true, &params->alloc.dptr, &params->conditional.phGraph_out};
}
NodeRequest allocationOf(CUDA_MEM_ALLOC_NODE_PARAMS* params) {
  NodeRequest made = request(CU_GRAPH_NODE_TYPE_MEM_ALLOC, params, [](CUgraphNodeParams& to, auto& p) {
    to.alloc = {p.poolProps, p.accessDescs, p.accessDescCount, p.bytesize, p.dptr};
  });
  if (made.given) made.address = &params->dptr;
  return made;
}

}  // namespace vgpu::client
