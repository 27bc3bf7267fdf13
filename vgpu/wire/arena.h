// The fixed addresses of device memory and pinned host memory, the same in every process and on every host.
//
// Device memory of virtual GPU n is at deviceArena(n). The driver reserves exactly at these hints (docs/facts.md). Pinned host memory is
// one sparse memfd, mapped at hostArenaBase in the program and in the worker, so that one address serves program, worker and GPU. The
// arenas begin above address sanitizer's shadow, which ends just above 0x1000'0000'0000. Thread sanitizer reserves most of the address
// space for itself; with it, the host arena lies in the range that it leaves free.
//
// What a program reserves and maps itself (virtual memory management) lies in the mapped arena, regardless of the device that has the
// memory; behind it are windows, in which the worker maps such memory for its own use.
#pragma once

#include <cstdint>

#include "vgpu/base/sizes.h"

namespace vgpu {

constexpr uint64_t maxDevices = 16;
constexpr uint64_t deviceArenaBase = 0x2000'0000'0000;
constexpr uint64_t deviceArenaBytes = 1 * TiB;  // per device
// The part of each device arena for managed memory: a multiple of the page size, because the program accesses it.
constexpr uint64_t managedPart = 512 * GiB, managedPartBytes = 256 * GiB;
// The part behind it: there the worker maps physical memory into which it moves data from elsewhere.
constexpr uint64_t movingPart = managedPart + managedPartBytes, movingPartBytes = deviceArenaBytes - movingPart;

#if defined(__SANITIZE_THREAD__)
constexpr uint64_t hostArenaBase = 0x7e90'0000'0000;
constexpr uint64_t hostArenaBytes = 64 * GiB;
constexpr bool programHasDeviceArenas = false;  // nor does the program reserve the addresses of device memory
#else
constexpr uint64_t hostArenaBase = 0x1100'0000'0000;
constexpr uint64_t hostArenaBytes = 1 * TiB;
constexpr bool programHasDeviceArenas = true;
#endif

constexpr uint64_t mappedArenaBase = 0x4000'0000'0000, mappedArenaBytes = 8 * TiB;
constexpr uint64_t windowArenaBase = mappedArenaBase + mappedArenaBytes, windowArenaBytes = 4 * TiB;

// The alignment that cuMemAlloc provides in practice (it guarantees 256) and that textures need: CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT is
// 512 on every device that CUDA 13 knows.
constexpr uint64_t allocationAlignment = 512;
// The smallest piece of physical memory that the driver maps (docs/facts.md).
constexpr uint64_t leaseGranularity = 2 * MiB;

constexpr uint64_t deviceArena(uint64_t device) { return deviceArenaBase + device * deviceArenaBytes; }

constexpr bool inDeviceArenas(uint64_t address) {
  return address >= deviceArenaBase && address < deviceArenaBase + maxDevices * deviceArenaBytes;
}
constexpr bool inManagedPart(uint64_t address) {
  return inDeviceArenas(address) && (address - deviceArenaBase) % deviceArenaBytes >= managedPart;
}
constexpr bool inMappedArena(uint64_t address) {
  return address >= mappedArenaBase && address < mappedArenaBase + mappedArenaBytes;
}
// Whether a size or an address is a multiple of leaseGranularity; and whether a program may reserve such a range.
constexpr bool isGranular(uint64_t value) { return value % leaseGranularity == 0; }
constexpr bool isMappedRange(uint64_t address, uint64_t bytes) {
  return bytes != 0 && isGranular(address) && isGranular(bytes) && inMappedArena(address) &&
         bytes <= mappedArenaBase + mappedArenaBytes - address;
}
constexpr bool inHostArena(uint64_t address) {
  return address >= hostArenaBase && address < hostArenaBase + hostArenaBytes;
}

}  // namespace vgpu
