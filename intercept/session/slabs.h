// Staging slabs: where pageable bytes wait between the program and the GPU.
//
// A slab is taken by compare-and-swap and given back by whoever is done with it last: the program after a copy to the
// host, the GPU itself after a copy to the device. Acquire on taking pairs with that release.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "vgpu/wire/segment.h"

namespace vgpu {

class Slabs {
 public:
  explicit Slabs(const Segment& segment) : segment(segment) {}

  // Waits for a free slab; nothing once `abandoned`. Any thread. Looks from `first` on: a thread that always begins at the
  // same place finds the slab that it used last still in its core's cache.
  std::optional<uint32_t> take(uint32_t first, const std::atomic<bool>& abandoned);
  void give(uint32_t slab) { segment.slabState(slab).busy.store(0, std::memory_order_release); }

 private:
  const Segment& segment;
};

}  // namespace vgpu
