// A pool that can be exported to other processes.
#pragma once

#include "program.h"

inline cudaMemPool_t exportablePool(int& descriptor) {
  cudaMemPoolProps properties{};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location = {cudaMemLocationTypeDevice, 0};
  properties.handleTypes = cudaMemHandleTypePosixFileDescriptor;
  cudaMemPool_t pool;
  CHECK(cudaMemPoolCreate(&pool, &properties));
  CHECK(cudaMemPoolExportToShareableHandle(&descriptor, pool, cudaMemHandleTypePosixFileDescriptor, 0));
  return pool;
}
