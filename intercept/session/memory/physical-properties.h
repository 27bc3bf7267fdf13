// What a program asks for of physical memory (cuMemCreate), and what of that a session refuses.
#pragma once

#include <cuda.h>

namespace vgpu::client {

class Session;

// Whether physical memory there is the host's, and access by it the host's. The current node has none, other than of managed memory.
inline bool isOfHost(const CUmemLocation& location) {
  return location.type == CU_MEM_LOCATION_TYPE_HOST || location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA;
}

// The memory is for the tiles of sparse arrays, and for arrays of deferred mapping: it has no address.
inline bool isTilePool(const CUmemAllocationProp& properties) {
  return (properties.allocFlags.usage & CU_MEM_CREATE_USAGE_TILE_POOL) != 0;
}

// CUDA's answer.
CUresult checkProperties(const Session& session, const CUmemAllocationProp* properties);

}  // namespace vgpu::client
