#include "intercept/session/slot-table.h"

#include <chrono>
#include <thread>

#include "vgpu/wire/futex.h"

namespace vgpu::client {

std::optional<uint16_t> SlotTable::tryTake(Range range, uint32_t number) {
  uint32_t slot = range.first + number % range.count, end = range.first + range.count;
  for (uint32_t i = 0; i < range.count; ++i, ++slot) {
    if (slot == end) slot = range.first;
    auto& flag = flagOf(slot);
    if (!flag.load(std::memory_order_relaxed) && !flag.exchange(true, std::memory_order_acquire))
      return static_cast<uint16_t>(slot);
  }
  return std::nullopt;
}

std::optional<uint16_t> SlotTable::take(Range range, uint32_t number, const std::atomic<bool>& abandoned) {
  for (Backoff backoff; !abandoned.load(std::memory_order_relaxed);) {
    if (auto slot = tryTake(range, number)) return slot;
    if (backoff.spin()) continue;
    std::this_thread::sleep_for(std::chrono::nanoseconds(backoff.sleepNanoseconds()));
  }
  return std::nullopt;
}

}  // namespace vgpu::client
