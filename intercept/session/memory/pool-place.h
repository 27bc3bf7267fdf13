// What the memory of a pool is, and where: each such place has a default pool and a current one (StreamPools).
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

  // All places have a number; that of a device's own memory is the device's.
  static constexpr unsigned count = 2 * (maxDevices + 4);
  unsigned number() const;
  // The other way round. Those that CUDA does not have (pinned memory that is nowhere) are numbers too.
  static PoolPlace at(unsigned number);
  // The place that a program names, of that many devices and a host that is one node; CUDA's answer if there is none.
  static CUresult find(CUmemAllocationType type, const CUmemLocation& location, size_t devices, PoolPlace& place);
  // That of a new pool, if it can have these properties.
  static CUresult ofNew(const CUmemPoolProps& properties, size_t devices, PoolPlace& place);
};

}  // namespace vgpu::client
