#include "intercept/session/slabs.h"

#include <thread>

#include "vgpu/wire/futex.h"

namespace vgpu {

std::optional<uint32_t> Slabs::take(uint32_t first, const std::atomic<bool>& abandoned) {
  Backoff backoff;
  while (!abandoned.load(std::memory_order_relaxed)) {
    for (uint32_t i = 0; i < slabCount; ++i) {
      uint32_t slab = (first + i) % slabCount;
      auto& busy = segment.slabState(slab).busy;
      uint32_t free = 0;
      if (busy.load(std::memory_order_relaxed) == 0 && busy.compare_exchange_strong(free, 1, std::memory_order_acquire))
        return slab;
    }
    // Nobody wakes us: the GPU gives slabs back with a plain write.
    if (!backoff.spin()) std::this_thread::sleep_for(std::chrono::nanoseconds(backoff.sleepNanoseconds()));
  }
  return std::nullopt;
}

}  // namespace vgpu
