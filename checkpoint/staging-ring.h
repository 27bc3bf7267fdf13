// Chunks of host memory through which device memory goes to files and back, pinned so that a GPU copies there by itself.
//
// Owns the memory; a slot belongs to whoever has it. Made for one save or restore, and small: pinned memory is fast where it is used
// again, and to make it takes 50 ms a GiB and more. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "stub/driver/driver.h"

namespace vgpu::checkpoint {

// How host memory is registered that any GPU copies to.
constexpr unsigned forAllGpus = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP;

struct Slot {
  size_t number = 0;  // in the ring
  std::byte* memory = nullptr;
  // What is in it, for the next who gets it.
  size_t chunk = 0;
  size_t bytes = 0;
  bool isDigested = false;
};

class StagingRing {
 public:
  // For as many `threads` between the GPU and files; fewer for so few `chunks` that making it would take longer than copying them.
  static size_t slotsFor(unsigned threads, size_t chunks = SIZE_MAX);
  // How many chunks so many pieces are worth, of so many bytes in all: small ones need no more room than a few that are whole.
  static size_t worth(size_t pieces, uint64_t bytes);
  // `driver` pins it, nullptr if no device is involved. Throws kj::Exception if there is no memory for it.
  StagingRing(const stub::Driver* driver, size_t slots);
  ~StagingRing();
  StagingRing(const StagingRing&) = delete;
  StagingRing& operator=(const StagingRing&) = delete;

  std::vector<Slot>& all() { return slots; }
  // All of it, for something else while no slot is in use; and where a GPU has it, 0 if it has not. In a device's context.
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
