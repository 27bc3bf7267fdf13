// The kind and location of a pool's memory: each such place has a default pool and a current pool (StreamPools).
#pragma once

#include <cuda.h>

#include <optional>

#include "vgpu/wire/arena.h"

namespace vgpu::client {

struct PoolPlace {
  CUmemAllocationType type = CU_MEM_ALLOCATION_TYPE_PINNED;
  CUmemLocation location{CU_MEM_LOCATION_TYPE_DEVICE, 0};

  bool isManaged() const { return type == CU_MEM_ALLOCATION_TYPE_MANAGED; }
  bool isOnDevice() const { return location.type == CU_MEM_LOCATION_TYPE_DEVICE; }
  bool operator==(const PoolPlace& other) const {
    return type == other.type && location.type == other.location.type && location.id == other.location.id;
  }

  // Every place has a number; a device's own memory has the device's number.
  static constexpr unsigned count = 2 * (maxDevices + 4);
  unsigned number() const;
  // The inverse. Places that CUDA does not have (pinned memory without a location) have numbers too.
  static PoolPlace at(unsigned number);
  // The place that a program names, with that many devices and a host of one NUMA node; CUDA's error if there is none.
  static CUresult find(CUmemAllocationType type, const CUmemLocation& location, size_t devices, PoolPlace& place);
  // The place of a new pool, or CUDA's error if it cannot have these properties.
  static CUresult ofNew(const CUmemPoolProps& properties, size_t devices, PoolPlace& place);
};

}  // namespace vgpu::client
