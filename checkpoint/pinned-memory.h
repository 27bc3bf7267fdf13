// A worker's view of the daemon's pinned memory (`vgpud --pinned`): mapped, and registered with the driver when the worker starts, so that
// GPUs copy chunks directly into and out of it.
//
// Owns the mapping. The daemon decides which parts an operation may use (PinnedRoom). Any thread; made and destroyed in a device's context.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "stub/driver/driver.h"
#include "vgpu/base/memory-file.h"
#include "vgpu/store/pinned-place.h"

namespace vgpu::checkpoint {

class PinnedMemory {
 public:
  // Throws kj::Exception if the file cannot be mapped. If the driver does not register the memory, copies go through the driver's own
  // buffers: slower, but correct.
  PinnedMemory(const stub::Driver& driver, const MemoryFile& file);
  ~PinnedMemory();
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;

  std::span<std::byte> bytes() const { return {mapping.data(), mapping.bytes()}; }

 private:
  const stub::Driver& driver;
  Mapping mapping;
  bool isRegistered = false;
};

// The part of it that one operation may use. The functions throw kj::Exception if the daemon has ended or has cancelled the operation.
struct PinnedRoom {
  std::span<std::byte> memory;
  std::string pool;  // its name, for the manifest
  // The places of these chunks. makesRoom: allocates room for those that are missing, as far as there is any.
  std::function<std::vector<PinnedPlace>(const DigestKey& key, std::span<const ChunkName> names, bool makesRoom)> place;
  // Names the chunks that were written into room.
  std::function<void(const DigestKey& key, std::span<const ChunkName> names, std::span<const uint64_t> offsets)> name;

  // The bytes of a chunk there. Throws kj::Exception if they would lie outside the memory.
  std::span<std::byte> at(uint64_t offset, size_t bytes) const;
};

}  // namespace vgpu::checkpoint
