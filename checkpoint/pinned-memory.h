// The daemon's pinned memory (`vgpud --pinned`) as a worker has it: mapped, and registered with the driver when the worker
// starts, so that GPUs copy chunks straight into it and out of it.
//
// Owns the mapping. What of it an operation may use is the daemon's decision (PinnedRoom). Any thread; made and destroyed in a
// device's context.
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
  // Throws kj::Exception if it cannot be mapped. A driver that does not register it copies through memory of its own: slower, not
  // wrong.
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

// What one operation has of it. The functions may throw kj::Exception: the daemon has ended, or gives the operation up.
struct PinnedRoom {
  std::span<std::byte> memory;
  std::string pool;  // its name, for the manifest
  // Where each of these chunks is. makesRoom: those that are not there get room, as far as there is any.
  std::function<std::vector<PinnedPlace>(const DigestKey& key, std::span<const ChunkName> names, bool makesRoom)> place;
  // What was put into room.
  std::function<void(const DigestKey& key, std::span<const ChunkName> names, std::span<const uint64_t> offsets)> name;

  // The bytes of a chunk there. Throws kj::Exception if they would lie outside.
  std::span<std::byte> at(uint64_t offset, size_t bytes) const;
};

}  // namespace vgpu::checkpoint
