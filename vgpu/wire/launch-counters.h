// How many kernels a worker's session has launched, and how many of them in graphs (docs/folding.md). In memory that the worker shares with
// its daemon: each GPU's thread counts that GPU's launches, anybody reads at any time.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "vgpu/wire/arena.h"

namespace vgpu {

struct LaunchCounters {
  // The counters of one GPU. Only one thread writes them, so it needs no atomic increment; relaxed, because they order no other data.
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
  // Call it while no thread counts.
  void clear() {
    for (auto& gpu : gpus) gpu.all.store(0, std::memory_order_relaxed), gpu.folded.store(0, std::memory_order_relaxed);
  }
};

}  // namespace vgpu
