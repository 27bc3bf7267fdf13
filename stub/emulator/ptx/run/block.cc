#include "stub/emulator/ptx/run/block.h"

#include <algorithm>
#include <numeric>

namespace vgpu::emulator {
void Grid::report(Fault what) {
  const std::lock_guard lock(mutex);
  if (!fault) fault = std::move(what);
  stopped = true;
}

void Block::begin(Grid& grid, uint64_t index) {
  launchGrid = &grid;
  number = index;
  const Launch& launch = grid.launch;
  position = {static_cast<uint32_t>(index % launch.grid[0]),
              static_cast<uint32_t>(index / launch.grid[0] % launch.grid[1]),
              static_cast<uint32_t>(index / launch.grid[0] / launch.grid[1])};
  threadCount = living = launch.block[0] * launch.block[1] * launch.block[2];
  // Dynamic shared memory follows the static, at the alignment that any type needs.
  sharedSize = kernel().sharedBytes(launch.dynamicSharedBytes);
  sharedMemory.assign(sharedSize, std::byte{0});
  activeCheck = nullptr;
  if (launch.checks && sharedSize) {
    if (!ownCheck) ownCheck = std::make_unique<SharedCheck>();
    activeCheck = ownCheck.get();
    activeCheck->begin(launch.checks, sharedSize, threadCount);
  }
  barriers.fill({});
  output.clear();
  warpCount = (threadCount + laneCount - 1) / laneCount;
  while (warps.size() < warpCount) warps.push_back(std::make_unique<Warp>());
  for (size_t i = 0; i < warpCount; ++i) warps[i]->reset(*this, static_cast<uint32_t>(i));
  order.resize(warpCount);
  std::iota(order.begin(), order.end(), 0);
  if (launch.schedule) std::shuffle(order.begin(), order.end(), std::mt19937_64(launch.schedule ^ index));
}

Block::Outcome Block::run() {
  while (true) {
    progress = false;
    bool ran = false, left = false;
    for (const uint32_t which : order) {
      Warp& warp = *warps[which];
      if (warp.finished()) continue;
      left = true;
      if (!warp.ready()) continue;
      ran = true;
      warp.run();
      if (launchGrid->stopped.load(std::memory_order_relaxed)) return Outcome::faulted;
    }
    if (!left) return Outcome::done;
    if (!ran) return stuck();
    if (!progress) return Outcome::yielded;
  }
}

bool Block::arrive(int index, uint32_t expected, uint32_t threads, uint32_t trueThreads, bool waits) {
  Barrier& barrier = barriers[index];
  barrier.expected = expected;
  barrier.arrived += threads;
  barrier.count += trueThreads;
  if (waits) barrier.waiting += threads;
  if (barrier.arrived < (expected ? expected : living)) {
    progress = true;
    return false;
  }
  complete(index);
  return true;
}

void Block::complete(int index) {
  Barrier& barrier = barriers[index];
  barrier.all = barrier.count == barrier.arrived ? ~0u : 0;
  barrier.any = barrier.count ? ~0u : 0;
  results[index] = barrier;
  barrier = {};
  if (activeCheck) activeCheck->ordered();
  for (size_t i = 0; i < warpCount; ++i) warps[i]->releaseBarrier(index);
  progress = true;
}

void Block::threadsExited(uint32_t count) {
  living -= count;
  progress = true;
  for (int i = 0; i < blockBarriers; ++i) {
    const Barrier& barrier = barriers[i];
    if (barrier.arrived && barrier.expected == 0 && barrier.arrived >= living) complete(i);
  }
}

// No thread can go on: every one that lives waits at a barrier that the others will not reach.
Block::Outcome Block::stuck() {
  for (size_t i = 0; i < warpCount; ++i) {
    if (warps[i]->finished()) continue;
    warps[i]->reportStuck(living);
    break;
  }
  return Outcome::faulted;
}

}  // namespace vgpu::emulator
