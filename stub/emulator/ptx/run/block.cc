#include "stub/emulator/ptx/run/block.h"

#include <algorithm>
#include <numeric>

namespace vgpu::emulator {
void Grid::report(Fault what) {
  const std::lock_guard lock(mutex);
  if (!fault) fault = std::move(what);
  stopped = true;
}

uint64_t Grid::blockOf(uint64_t cluster, uint32_t rank) const {
  std::array<uint64_t, 3> at{};
  uint64_t left = cluster, within = rank;
  for (int axis = 0; axis < 3; ++axis) {
    const uint64_t size = launch.cluster[axis], clusters = launch.grid[axis] / size;
    at[axis] = left % clusters * size + within % size;
    left /= clusters;
    within /= size;
  }
  return at[0] + launch.grid[0] * (at[1] + launch.grid[1] * at[2]);
}

void Block::join(Cluster& cluster, uint32_t rank) {
  owner = &cluster;
  rankInCluster = rank;
  cluster.blocks.push_back(this);
}

void Block::arriveAtCluster(uint32_t threads) {
  owner->arrived += threads;
  progress = true;
  owner->completeIfAllArrived();
}

void Block::releaseFromCluster() {
  if (activeCheck) activeCheck->ordered();
  for (size_t i = 0; i < warpCount; ++i) {
    warps[i]->arrivedAtCluster = 0;
    warps[i]->releaseBarrier(clusterBarrierIndex);
  }
  progress = true;
}

void Block::releaseWarpgroup(uint32_t index) {
  warpgroups[index] = {};
  const size_t first = size_t{index} * warpgroupWarps;
  for (size_t i = first; i < first + warpgroupWarps; ++i) warps[i]->releaseBarrier(firstWarpgroupIndex + static_cast<int>(index));
  progress = true;
}

void Block::begin(Grid& grid, uint64_t index) {
  launchGrid = &grid;
  number = index;
  alone.blocks.assign(1, this);
  alone.arrived = 0;
  owner = &alone;
  rankInCluster = 0;
  const Launch& launch = grid.launch;
  position = {static_cast<uint32_t>(index % launch.grid[0]),
              static_cast<uint32_t>(index / launch.grid[0] % launch.grid[1]),
              static_cast<uint32_t>(index / launch.grid[0] / launch.grid[1])};
  threadCount = livingThreads = launch.block[0] * launch.block[1] * launch.block[2];
  // Dynamic shared memory follows the static, aligned for any type.
  sharedSize = kernel().sharedBytes(launch.dynamicSharedBytes);
  sharedMemory.assign(readableSharedBytes() + reservedSharedBytes, std::byte{0});
  activeCheck = nullptr;
  // Not checked in clusters: other blocks may write to the memory, and are ordered in other ways.
  if (launch.checks && sharedSize && grid.clusterBlocks() == 1) {
    if (!ownCheck) ownCheck = std::make_unique<SharedCheck>();
    activeCheck = ownCheck.get();
    activeCheck->begin(launch.checks, sharedSize, threadCount);
  }
  barriers.fill({});
  warpgroups.fill({});
  deviceErrors.clear();
  output.clear();
  warpCount = (threadCount + laneCount - 1) / laneCount;
  while (warps.size() < warpCount) warps.push_back(std::make_unique<Warp>());
  for (size_t i = 0; i < warpCount; ++i) warps[i]->reset(*this, static_cast<uint32_t>(i));
  order.resize(warpCount);
  std::iota(order.begin(), order.end(), 0);
  if (launch.schedule) std::shuffle(order.begin(), order.end(), std::mt19937_64(launch.schedule ^ index));
}

Block::Outcome Block::run() {
  for (bool isFirst = true;; isFirst = false) {
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
    if (!ran && owner->blocks.size() > 1 && owner->arrived != 0) return isFirst ? Outcome::waiting : Outcome::arrived;
    if (!ran) return stuck();
    if (!progress) return Outcome::yielded;
  }
}

bool Block::arrive(int index, uint32_t expected, uint32_t threads, Votes votes, bool waits) {
  Barrier& barrier = barriers[index];
  barrier.expected = expected;
  barrier.arrived += threads;
  barrier.count += votes.yes;
  barrier.against += votes.no;
  if (waits) barrier.waiting += threads;
  if (barrier.arrived < (expected ? expected : livingThreads)) {
    progress = true;
    return false;
  }
  complete(index);
  return true;
}

void Block::complete(int index) {
  Barrier& barrier = barriers[index];
  barrier.all = barrier.against == 0 ? ~0u : 0;
  barrier.any = barrier.count ? ~0u : 0;
  results[index] = barrier;
  barrier = {};
  if (activeCheck) activeCheck->ordered();
  for (size_t i = 0; i < warpCount; ++i) {
    warps[i]->arrivedApart[index] = 0;
    warps[i]->releaseBarrier(index);
  }
  progress = true;
}

void Block::threadsExited(uint32_t count, uint32_t arrivedAtCluster) {
  livingThreads -= count;
  owner->arrived -= arrivedAtCluster;
  progress = true;
  for (int i = 0; i < blockBarriers; ++i) {
    const Barrier& barrier = barriers[i];
    if (barrier.arrived && barrier.expected == 0 && barrier.arrived >= livingThreads) complete(i);
  }
  owner->completeIfAllArrived();
}

// No thread can go on: every living thread waits at a barrier that the others will not reach.
Block::Outcome Block::stuck() {
  for (size_t i = 0; i < warpCount; ++i) {
    if (warps[i]->finished()) continue;
    warps[i]->reportStuck(livingThreads);
    break;
  }
  return Outcome::faulted;
}

}  // namespace vgpu::emulator
