// Where the module images of a worker's session came from. Lies in memory that the worker shares with its daemon: the worker's threads
// write, anybody reads at any time.
#pragma once

#include <atomic>
#include <cstdint>

namespace vgpu {

struct ImageCounters {
  std::atomic<uint64_t> sent, sentBytes;    // by the program
  std::atomic<uint64_t> found, foundBytes;  // in the store

  void clear() {
    for (auto* counter : {&sent, &sentBytes, &found, &foundBytes}) counter->store(0, std::memory_order_relaxed);
  }
};
static_assert(std::atomic<uint64_t>::is_always_lock_free);

}  // namespace vgpu
