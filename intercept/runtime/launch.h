// Kernel launches: the checks before the driver is called, and lookup of a kernel.
#pragma once
#include <driver_types.h>

namespace vgpu::runtime {

/// The cudaKernel_t of a registered host function. Needs no driver.
cudaError_t findKernel(cudaKernel_t* kernel, const void* host);

}  // namespace vgpu::runtime
