// The properties that a program requests of physical memory (cuMemCreate), and which of them a session refuses.
#pragma once

#include <cuda.h>

namespace vgpu::client {

class Session;

// Whether the location is the host, for physical memory and for access. HOST_NUMA_CURRENT is valid for managed memory only.
inline bool isOfHost(const CUmemLocation& location) {
  return location.type == CU_MEM_LOCATION_TYPE_HOST || location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA;
}

// Whether the memory is for tiles of sparse arrays and arrays of deferred mapping: it then has no address.
inline bool isTilePool(const CUmemAllocationProp& properties) {
  return (properties.allocFlags.usage & CU_MEM_CREATE_USAGE_TILE_POOL) != 0;
}

// CUDA's result.
CUresult checkProperties(const Session& session, const CUmemAllocationProp* properties);

}  // namespace vgpu::client
