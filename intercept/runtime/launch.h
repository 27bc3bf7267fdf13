// Kernel launches: the checks before the driver is called, and the lookup of a kernel.
#pragma once
#include <driver_types.h>

namespace vgpu::runtime {

/// What nvcc's code uses as the cudaKernel_t of a registered host function; only the launch functions accept it. Needs no driver.
cudaError_t findKernel(cudaKernel_t* kernel, const void* host);

}  // namespace vgpu::runtime
