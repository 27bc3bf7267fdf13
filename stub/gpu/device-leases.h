// Physical memory of one GPU, leased to the session in large pieces and mapped at the fixed addresses of that GPU's arena.
//
// Owned and changed by the thread of its GPU; any other GPU's thread may ask owns(), because copies reach all of a session's
// memory. `mutex` is a leaf; access is given under it, so that a lease and a device that come at one time do not miss each other. A
// suspend drops the mappings; restore leases the same pieces again.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "stub/driver/driver.h"
#include "vgpu/wire/arena.h"

namespace vgpu::stub {

class DeviceLeases {
 public:
  DeviceLeases(const Driver& driver, unsigned device) : driver(driver), device(device) {}
  ~DeviceLeases();
  DeviceLeases(const DeviceLeases&) = delete;
  DeviceLeases& operator=(const DeviceLeases&) = delete;

  // Reserves the arena. Throws kj::Exception if the driver does not give that very address.
  void reserveArena();
  // Lets `other`, whose context is there, use what is leased and what will be, if it can reach this GPU's memory. Any thread. Throws
  // kj::Exception.
  void letReach(unsigned other);

  // Backs [address, address + bytes) of the arena. CUDA's answer: out of memory, or invalid value if the range is not free in
  // the arena or not in whole granules.
  CUresult lease(uint64_t address, uint64_t bytes);
  CUresult endLease(uint64_t address);

  // Any thread. Whether [address, address + bytes) lies within one run of leased memory: what a session may name in a copy.
  bool owns(uint64_t address, uint64_t bytes) const;

 private:
  struct Lease {
    uint64_t bytes;
    CUmemGenericAllocationHandle physical;
  };

  const Driver& driver;
  const unsigned device;
  bool isReserved = false;
  // Of this GPU, and of the others that are used and reach its memory: a copy between two GPUs is executed by one of them, and the
  // driver refuses it to one that may not (docs/facts.md). So a program's kernels reach it without having enabled it, too.
  std::vector<CUmemAccessDesc> access;
  std::map<uint64_t, Lease> leases;
  mutable std::mutex mutex;  // held to change `leases` and `access`, and to read them on another thread
};

}  // namespace vgpu::stub
