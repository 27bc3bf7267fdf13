// Pinned memory for what a program changes between the last round of copies and its quiesce, allocated in advance because pinning takes
// longer than copying. Used by the thread that controls the worker; made and destroyed in a device's context.
#pragma once

#include <algorithm>
#include <span>

#include "checkpoint/staging-ring.h"
#include "vgpu/base/sizes.h"
#include "vgpu/snapshot/chunk.h"

namespace vgpu::checkpoint {

class HeldMemory {
 public:
  static constexpr uint64_t least = 64 * MiB, most = 1 * GiB;

  // Sized for twice the bytes that changed in the last round, limited to [least, most] and to `mostHere`, which must be at least a chunk.
  HeldMemory(const stub::Driver& driver, uint64_t changed, uint64_t mostHere = most)
      : ring(&driver, std::min(std::clamp(2 * changed, least, most), mostHere) / snapshot::chunkBytes) {}

  // Room for so many bytes, valid as long as this object; empty if there is none.
  std::span<std::byte> take(size_t bytes) {
    size_t begin = roundUp(used, 256);
    if (begin + bytes > ring.whole().size()) return {};
    used = begin + bytes;
    return ring.whole().subspan(begin, bytes);
  }

 private:
  StagingRing ring;
  size_t used = 0;
};

}  // namespace vgpu::checkpoint
