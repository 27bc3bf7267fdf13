// The addresses of a context's own device memory: variables of modules, the heap. They are assigned as hardware's driver does
// (observed on an H200, driver 580.159): every piece by itself; small ones side by side in chunks of 2 MiB, in the smallest gap
// that is large enough, of several the oldest; if there is none, in a new chunk. A piece of 2 MiB or more has chunks of its own,
// the rest of which stays unused. A chunk is the lowest free place of a range, is the device's memory, and is given back with the
// last piece in it. The range of modules' variables is shared with all else that needs addresses (va-heap.h).
//
// So places depend only on what was taken and given back before. Any thread may call.
#pragma once

#include <map>
#include <mutex>

#include "stub/emulator/memory/address-space.h"

namespace vgpu::emulator::api {

class PlacePool {
 public:
  // Chunks come from `range`; every piece begins at a multiple of `granule`, and takes whole ones.
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
  std::map<uint64_t, Chunk> chunks;  // these by address
  Gaps gaps;                         // in chunks of small pieces
  std::map<uint64_t, uint64_t> taken;
  uint64_t nextBorn = 0;
};

}  // namespace vgpu::emulator::api
