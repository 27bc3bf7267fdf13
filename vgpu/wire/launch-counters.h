// How many kernels a worker's session has launched, and how many of these in graphs (docs/folding.md). In memory that its daemon
// reads: written by the worker's threads, which add what they have counted when they have nothing else to do, read by anybody at
// any time.
#pragma once

#include <atomic>
#include <cstdint>

namespace vgpu {

struct LaunchCounters {
  std::atomic<uint64_t> all, folded;

  void clear() {
    for (auto* counter : {&all, &folded}) counter->store(0, std::memory_order_relaxed);
  }
};

}  // namespace vgpu
