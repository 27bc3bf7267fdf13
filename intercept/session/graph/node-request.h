// What the program asks a node to be: each entry of one type of node is one for any type, with the parameters in the structure that
// CUDA has for all of them.
#pragma once

#include <cuda.h>

namespace vgpu::client {

// The parameters of any node. `given` is false if the program gave none, or such as no type has.
struct NodeRequest {
  CUgraphNodeParams params{};
  bool given = true;
  CUdeviceptr* address = nullptr;  // where the program gets that of an allocation
  CUgraph** bodies = nullptr;      // and the bodies of a conditional node
};
// A child that the node takes over.
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
// Of a type whose parameters are one handle or address.
template <typename Params, typename Value>
NodeRequest requestOf(CUgraphNodeType type, Params CUgraphNodeParams::*params, Value value) {
  NodeRequest made;
  made.params.type = type;
  (made.params.*params) = {value};
  return made;
}

}  // namespace vgpu::client
