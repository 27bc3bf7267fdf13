#include "intercept/session/graph/node-request.h"

namespace vgpu::client {

namespace {

// The parameters of a type that the structure for all types has too, its context apart.
template <typename Params, typename Fill>
NodeRequest request(CUgraphNodeType type, const Params* params, Fill&& fill) {
  NodeRequest made;
  made.params.type = type;
  made.given = params != nullptr;
  if (made.given) fill(made.params, *params);
  return made;
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
  if (params == nullptr) return {.given = false};
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
