// Pinned memory for what a program changes between the last round of copies and its quiesce: made before, because pinning takes
// longer than copying. Of the thread that controls the worker; made and destroyed in a device's context.
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

  // For twice as much as has changed in the last round, within these and `mostHere`, which is a chunk at least.
  HeldMemory(const stub::Driver& driver, uint64_t changed, uint64_t mostHere = most)
      : ring(&driver, std::min(std::clamp(2 * changed, least, most), mostHere) / snapshot::chunkBytes) {}

  // Room for so many bytes, as long as this lives; empty if there is none.
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
