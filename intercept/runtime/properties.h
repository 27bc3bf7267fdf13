// cudaDeviceProp, filled from the driver's attributes.
#pragma once
#include <driver_types.h>

namespace vgpu::runtime {

cudaError_t readProperties(cudaDeviceProp* properties, int device);
/// The device whose properties are nearest to the wanted ones; only wanted properties that are set count.
cudaError_t findBestDevice(int* device, const cudaDeviceProp* wanted);

}  // namespace vgpu::runtime
