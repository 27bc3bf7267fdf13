// Assigns addresses of a context's own device memory (variables of modules, the heap) as the hardware's driver does (observed on an H200,
// driver 580.159). Each piece is placed by itself. Small ones lie side by side in chunks of 2 MiB: in the smallest gap that is large
// enough, the oldest among equal ones, or, if there is none, in a new chunk. A piece of 2 MiB or more has chunks of its own, the rest of
// which stays unused. A chunk has the lowest free address of a range, counts as the device's memory, and is freed with its last piece. The
// range for modules' variables also serves other users of addresses (va-heap.h).
//
// So addresses depend only on the earlier calls. Any thread may call.
#pragma once

#include <map>
#include <mutex>

#include "stub/emulator/memory/address-space.h"

namespace vgpu::emulator::api {

class PlacePool {
 public:
  // Chunks come from `range`; every piece begins at a multiple of `granule` and uses whole granules.
  PlacePool(Device& device, AddressSource& range, uint64_t granule) : device(device), range(range), granule(granule) {}

  // Refuses with CUDA_ERROR_OUT_OF_MEMORY.
  uint64_t take(uint64_t bytes, uint64_t alignment);
  void give(uint64_t base);

 private:
  struct Chunk {
    MemoryLease lease;
    uint64_t bytes;
  };
  struct Gap {
    uint64_t bytes, born;
  };
  using Gaps = std::map<uint64_t, Gap>;
  Gaps::iterator findGap(uint64_t bytes, uint64_t alignment);
  uint64_t addChunk(uint64_t bytes);
  void addGap(uint64_t base, uint64_t end);

  Device& device;
  AddressSource& range;
  const uint64_t granule;
  std::mutex mutex;
  std::map<uint64_t, Chunk> chunks;  // by address
  Gaps gaps;                         // in chunks of small pieces
  std::map<uint64_t, uint64_t> taken;
  uint64_t nextBorn = 0;
};

}  // namespace vgpu::emulator::api
