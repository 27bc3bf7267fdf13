// A graph node that allocates memory on the first device.
#pragma once

#include <cuda_runtime.h>

inline cudaMemAllocNodeParams memoryNode(size_t bytes) {
  cudaMemAllocNodeParams params{};
  params.poolProps.allocType = cudaMemAllocationTypePinned;
  params.poolProps.location.type = cudaMemLocationTypeDevice;
  params.bytesize = bytes;
  return params;
}
