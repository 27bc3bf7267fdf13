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

  // Waits for a free slab; nothing once `abandoned`. Any thread.
  std::optional<uint32_t> take(const std::atomic<bool>& abandoned);
  void give(uint32_t slab) { segment.slabState(slab).busy.store(0, std::memory_order_release); }

 private:
  const Segment& segment;
  std::atomic<uint32_t> next{0};  // where to look first
};

}  // namespace vgpu
