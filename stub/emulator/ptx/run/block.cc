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
  grid_ = &grid;
  linear_ = index;
  const Launch& launch = grid.launch;
  index_ = {static_cast<uint32_t>(index % launch.grid[0]),
            static_cast<uint32_t>(index / launch.grid[0] % launch.grid[1]),
            static_cast<uint32_t>(index / launch.grid[0] / launch.grid[1])};
  threads_ = living_ = launch.block[0] * launch.block[1] * launch.block[2];
  // Dynamic shared memory follows the static, at the alignment that any type needs.
  sharedBytes_ = kernel().sharedBytes(launch.dynamicSharedBytes);
  shared_.assign(sharedBytes_, std::byte{0});
  check_ = nullptr;
  if (launch.checks && sharedBytes_) {
    if (!ownCheck_) ownCheck_ = std::make_unique<SharedCheck>();
    check_ = ownCheck_.get();
    check_->begin(launch.checks, sharedBytes_, threads_);
  }
  barriers_.fill({});
  output.clear();
  warpCount_ = (threads_ + kLanes - 1) / kLanes;
  while (warps_.size() < warpCount_) warps_.push_back(std::make_unique<Warp>());
  for (size_t i = 0; i < warpCount_; ++i) warps_[i]->reset(*this, static_cast<uint32_t>(i));
  order_.resize(warpCount_);
  std::iota(order_.begin(), order_.end(), 0);
  if (launch.schedule) std::shuffle(order_.begin(), order_.end(), std::mt19937_64(launch.schedule ^ index));
}

Block::Outcome Block::run() {
  while (true) {
    progress_ = false;
    bool ran = false, left = false;
    for (const uint32_t which : order_) {
      Warp& warp = *warps_[which];
      if (warp.finished()) continue;
      left = true;
      if (!warp.ready()) continue;
      ran = true;
      warp.run();
      if (grid_->stopped.load(std::memory_order_relaxed)) return Outcome::faulted;
    }
    if (!left) return Outcome::done;
    if (!ran) return stuck();
    if (!progress_) return Outcome::yielded;
  }
}

bool Block::arrive(int index, uint32_t expected, uint32_t threads, uint32_t trueThreads, bool waits) {
  Barrier& barrier = barriers_[index];
  barrier.expected = expected;
  barrier.arrived += threads;
  barrier.count += trueThreads;
  if (waits) barrier.waiting += threads;
  if (barrier.arrived < (expected ? expected : living_)) {
    progress_ = true;
    return false;
  }
  complete(index);
  return true;
}

void Block::complete(int index) {
  Barrier& barrier = barriers_[index];
  barrier.all = barrier.count == barrier.arrived ? ~0u : 0;
  barrier.any = barrier.count ? ~0u : 0;
  results_[index] = barrier;
  barrier = {};
  if (check_) check_->ordered();
  for (size_t i = 0; i < warpCount_; ++i) warps_[i]->releaseBarrier(index);
  progress_ = true;
}

void Block::threadsExited(uint32_t count) {
  living_ -= count;
  progress_ = true;
  for (int i = 0; i < kBarriers; ++i) {
    const Barrier& barrier = barriers_[i];
    if (barrier.arrived && barrier.expected == 0 && barrier.arrived >= living_) complete(i);
  }
}

// No thread can go on: every one that lives waits at a barrier that the others will not reach.
Block::Outcome Block::stuck() {
  for (size_t i = 0; i < warpCount_; ++i) {
    if (warps_[i]->finished()) continue;
    warps_[i]->reportStuck(living_);
    break;
  }
  return Outcome::faulted;
}

}  // namespace vgpu::emulator
