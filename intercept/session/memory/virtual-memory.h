// Virtual memory management (cuMemAddressReserve, cuMemCreate, cuMemMap) as the program sees it: its reserved addresses, its physical
// memory, and its mappings.
//
// The client decides everything, as CUDA does; the worker creates and maps physical memory and does not know reservations. Physical memory
// lives while the program has a handle of it, a mapping, or an open descriptor to which it was exported.
//
// Host memory (HostPhysical) is mapped in this process with the access that the program has given the host (SecondMapping), and in the
// worker for the devices.
//
// Any thread. Locks: `changing`, held over a change and its calls; then `mutex`, a leaf, which guards the state that other threads' copies
// read. Stays in the program's process over a suspend, because the program holds pointers to the addresses; the worker repeats the mappings
// by the recipes of kinds physical and mapping.
#pragma once

#include <cuda.h>

#include <array>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>

#include "intercept/session/memory/mappings.h"
#include "intercept/session/memory/physicals.h"
#include "intercept/session/memory/reservations.h"
#include "vgpu/wire/arena.h"

namespace vgpu::client {

class Thread;

class VirtualMemory {
 public:
  // CUDA's results.
  CUresult reserve(uint64_t bytes, uint64_t alignment, uint64_t wanted, CUdeviceptr* address);
  CUresult unreserve(uint64_t address, uint64_t bytes);

  CUresult create(Thread& thread, uint64_t bytes, const CUmemAllocationProp* properties, CUmemGenericAllocationHandle* handle);
  CUresult release(Thread& thread, CUmemGenericAllocationHandle handle);
  CUresult retain(uint64_t address, CUmemGenericAllocationHandle* handle);
  CUresult describe(CUmemGenericAllocationHandle handle, CUmemAllocationProp* properties) const;
  CUresult exportTo(Thread& thread, CUmemGenericAllocationHandle handle, CUmemAllocationHandleType type, int* descriptor);
  CUresult importFrom(Thread& thread, int descriptor, CUmemAllocationHandleType type, CUmemGenericAllocationHandle* handle);

  CUresult map(Thread& thread, uint64_t address, uint64_t bytes, uint64_t offset, CUmemGenericAllocationHandle handle);
  CUresult unmap(Thread& thread, uint64_t address, uint64_t bytes);
  CUresult setAccess(Thread& thread, uint64_t address, uint64_t bytes, std::span<const CUmemAccessDesc> access);

  // Unmaps and ends all memory of a device whose context has ended by a fault.
  CUresult endDevice(Thread& thread, unsigned device);

  // The mapping that contains an address.
  struct Mapped {
    uint64_t address, bytes, id;
    uint64_t memory;  // identifies the physical memory, however often it is mapped
    unsigned device;
    CUmemAllocationHandleType exportable;
    std::array<uint8_t, maxDevices> access;  // CUmemAccess_flags
    Reservations::Range reserved;             // the reservation that contains it
    bool isHosts = false;                     // whether it is host memory
    CUmemAccess_flags hostAccess = CU_MEM_ACCESS_FLAGS_PROT_NONE;
  };
  std::optional<Mapped> find(uint64_t address) const;
  Where locate(uint64_t address, uint64_t bytes) const {
    std::lock_guard lock(mutex);
    return mappings.locate(address, bytes);
  }

 private:
  // Under `changing`; they take `mutex`.
  CUresult addHost(Thread& thread, const HostPhysical& memory, CUmemGenericAllocationHandle* handle);
  // Releases the memory to where it came from.
  CUresult end(Thread& thread, uint64_t handle);
  CUresult unmapOne(Thread& thread, uint64_t address);
  CUresult endUnused(Thread& thread);

  std::mutex changing;
  mutable std::mutex mutex;
  Reservations reservations;
  Physicals physicals;
  Mappings mappings;
};

}  // namespace vgpu::client
