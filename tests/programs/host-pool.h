// A pool of host memory, or of managed memory, that the first device may access.
#pragma once

#include "program.h"

inline cudaMemPool_t makePool(cudaMemAllocationType type, cudaMemLocationType place) {
  cudaMemPoolProps properties{};
  properties.allocType = type;
  properties.location.type = place;
  cudaMemPool_t pool;
  CHECK(cudaMemPoolCreate(&pool, &properties));
  cudaMemAccessDesc access{};
  access.location.type = cudaMemLocationTypeDevice;
  access.flags = cudaMemAccessFlagsProtReadWrite;
  CHECK(cudaMemPoolSetAccess(pool, &access, 1));
  return pool;
}
