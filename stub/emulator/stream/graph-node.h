// From CUDA's node parameters to operations: each make…() returns an operation whose description has the parameters' type, so that they can
// be queried.
#pragma once

#include "stub/emulator/stream/graph.h"
#include "stub/emulator/stream/launch.h"

namespace vgpu::emulator::api {

Operation makeKernel(Context&, const CUDA_KERNEL_NODE_PARAMS&);        // description: LaunchRequest
Operation makeMemcpy(Context&, const CUDA_MEMCPY3D&);                  // description: CUDA_MEMCPY3D
Operation makeMemset(Context&, const CUDA_MEMSET_NODE_PARAMS&);        // description: CUDA_MEMSET_NODE_PARAMS
Operation makeHost(const CUDA_HOST_NODE_PARAMS&);                      // description: CUDA_HOST_NODE_PARAMS
Operation makeMemOps(Context&, const CUDA_BATCH_MEM_OP_NODE_PARAMS&);  // description: MemOps

struct MemOps {
  CUcontext context;
  unsigned flags;
  std::vector<CUstreamBatchMemOpParams> operations;
};

// The description of a node of type `type`; refuses with CUDA_ERROR_INVALID_VALUE if the node has another type.
template <class Description>
const Description& describedAs(const Operation& operation, CUgraphNodeType type) {
  require(operation.type == type && operation.description != nullptr);
  return *static_cast<const Description*>(operation.description.get());
}

}  // namespace vgpu::emulator::api
