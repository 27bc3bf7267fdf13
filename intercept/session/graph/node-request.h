// What the program asks a node to be: each entry of one type of node is one for any type, with the parameters in the structure that
// CUDA has for all of them.
#pragma once

#include <cuda.h>

namespace vgpu::client {

// The parameters of any node. `given` is false if the program gave none.
struct NodeRequest {
  CUgraphNodeParams params{};
  bool given = true;
  CUdeviceptr* address = nullptr;  // where the program gets that of an allocation
  CUgraph** bodies = nullptr;      // and the bodies of a conditional node
};
NodeRequest requestOf(const CUDA_KERNEL_NODE_PARAMS_v1* params);
NodeRequest requestOf(const CUDA_KERNEL_NODE_PARAMS* params);
NodeRequest requestOf(const CUDA_MEMCPY3D* params);
NodeRequest requestOf(const CUDA_MEMSET_NODE_PARAMS* params);
NodeRequest requestOf(const CUDA_HOST_NODE_PARAMS* params);
NodeRequest requestOf(const CUDA_BATCH_MEM_OP_NODE_PARAMS* params);
NodeRequest requestOf(CUgraphNodeParams* params);
NodeRequest allocationOf(CUDA_MEM_ALLOC_NODE_PARAMS* params);
NodeRequest freeOf(CUdeviceptr address);
// Of a type that needs no more than an event, or nothing.
NodeRequest requestOf(CUgraphNodeType type, CUevent event = nullptr);
NodeRequest requestOf(CUgraph child);

}  // namespace vgpu::client
