// The program's request for a node: the entries for each type of node are converted to one for any type, with the parameters in CUDA's
// structure for all types.
#pragma once

#include <cuda.h>

namespace vgpu::client {

// The parameters of a node of any type. `given` is false if the program passed none, or invalid ones.
struct NodeRequest {
  CUgraphNodeParams params{};
  bool given = true;
  CUdeviceptr* address = nullptr;  // receives the address of an allocation
  CUgraph** bodies = nullptr;      // receives the bodies of a conditional node
};
// A child graph of which the node takes ownership.
inline bool isMove(const NodeRequest& request) {
  return request.given && request.params.type == CU_GRAPH_NODE_TYPE_GRAPH &&
         request.params.graph.ownership == CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE;
}

NodeRequest requestOf(const CUDA_KERNEL_NODE_PARAMS_v1* params);
NodeRequest requestOf(const CUDA_KERNEL_NODE_PARAMS* params);
NodeRequest requestOf(const CUDA_MEMCPY3D* params);
NodeRequest requestOf(const CUDA_MEMSET_NODE_PARAMS* params);
NodeRequest requestOf(const CUDA_HOST_NODE_PARAMS* params);
NodeRequest requestOf(const CUDA_BATCH_MEM_OP_NODE_PARAMS* params);
NodeRequest requestOf(CUgraphNodeParams* params);
NodeRequest allocationOf(CUDA_MEM_ALLOC_NODE_PARAMS* params);
// For a type whose parameters are a single handle or address.
template <typename Params, typename Value>
NodeRequest requestOf(CUgraphNodeType type, Params CUgraphNodeParams::*params, Value value) {
  NodeRequest made;
  made.params.type = type;
  (made.params.*params) = {value};
  return made;
}

}  // namespace vgpu::client
