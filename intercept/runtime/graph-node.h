// Parameters of graph nodes, from the runtime's form to the driver's.
#pragma once
#include "intercept/runtime/convert.h"
#include "intercept/runtime/registry.h"
#include "intercept/runtime/rows.h"
#include "intercept/runtime/shape.h"

namespace vgpu::runtime {

cudaError_t toDriver(const cudaKernelNodeParams* from, CUDA_KERNEL_NODE_PARAMS& to);
inline cudaError_t toDriver(const cudaMemcpy3DParms* from, CUDA_MEMCPY3D& to) { return describeCopy(from, to); }

/// A copy of linear memory, as a copy node of one row.
struct PlainCopy {
  void* to;
  const void* from;
  size_t bytes;
  cudaMemcpyKind kind;
};
inline cudaError_t toDriver(const PlainCopy* from, CUDA_MEMCPY3D& to) {
  Side source{.memory = const_cast<void*>(from->from)};
  Side target{.memory = from->to};
  return describeCopy(target, source, {from->bytes, 1, 1}, from->kind, to);
}

/// Calls `use` with the parameters in the driver's form.
template <class Driver, class Runtime, class Use>
cudaError_t withParameters(const Runtime* parameters, Use use) {
  Driver driver;
  cudaError_t error = toDriver(parameters, driver);
  return error != cudaSuccess ? error : answer(use(driver));
}

}  // namespace vgpu::runtime
