// How the module images of a worker's session came to it. In memory that its daemon reads: written by the worker's threads, read
// by anybody at any time.
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
