// Chunk-sized slots of host memory through which device memory goes to files and back, pinned so that a GPU copies to them directly.
//
// Owns the memory; a slot belongs to the thread that has taken it. Made for one save or restore, and small: pinned memory is fast when
// reused, and allocating it takes 50 ms a GiB and more. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "stub/driver/driver.h"

namespace vgpu::checkpoint {

// The flags with which host memory is registered that any GPU copies to.
constexpr unsigned forAllGpus = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP;

struct Slot {
  size_t number = 0;  // index in the ring
  std::byte* memory = nullptr;
  // The slot's content, for the next stage.
  size_t chunk = 0;
  size_t bytes = 0;
  bool isDigested = false;
};

class StagingRing {
 public:
  // The number of slots for `threads` between the GPU and files; fewer for few `chunks`, where making the ring would take longer than
  // copying.
  static size_t slotsFor(unsigned threads, size_t chunks = SIZE_MAX);
  // How many chunks these pieces count as, with `bytes` in total: small pieces need no more room than a few whole chunks.
  static size_t worth(size_t pieces, uint64_t bytes);
  // `driver` pins the memory; nullptr if no device is involved. Throws kj::Exception if there is no memory.
  StagingRing(const stub::Driver* driver, size_t slots);
  ~StagingRing();
  StagingRing(const StagingRing&) = delete;
  StagingRing& operator=(const StagingRing&) = delete;

  std::vector<Slot>& all() { return slots; }
  // The whole memory, for other use while no slot is in use; and its address on a GPU, 0 if it has none. Call it in a device's context.
  std::span<std::byte> whole() const { return {memory, bytes}; }
  CUdeviceptr onGpu() const;

 private:
  const stub::Driver* driver;
  size_t bytes;
  std::byte* memory = nullptr;
  bool pinned = false;
  std::vector<Slot> slots;
};

}  // namespace vgpu::checkpoint
