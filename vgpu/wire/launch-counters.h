// How many kernels a worker's session has launched, and how many of these in graphs (docs/folding.md). In memory that its daemon
// reads: the thread of a GPU counts that GPU's, anybody reads at any time.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "vgpu/wire/arena.h"

namespace vgpu {

struct LaunchCounters {
  // Of one GPU. One thread writes, so no locked instruction is needed; relaxed, because nothing is read that they order.
  struct alignas(64) OfGpu {
    std::atomic<uint64_t> all{0}, folded{0};

    void countLaunch() { all.store(all.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed); }
    void countFolded() { folded.store(folded.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed); }
  };
  std::array<OfGpu, maxDevices> gpus;

  uint64_t sum(std::atomic<uint64_t> OfGpu::* counter) const {
    uint64_t total = 0;
    for (auto& gpu : gpus) total += (gpu.*counter).load(std::memory_order_relaxed);
    return total;
  }
  // While nobody counts.
  void clear() {
    for (auto& gpu : gpus) gpu.all.store(0, std::memory_order_relaxed), gpu.folded.store(0, std::memory_order_relaxed);
  }
};

}  // namespace vgpu
