#include "intercept/session/memory/slabs.h"

#include <thread>

#include "vgpu/wire/futex.h"

namespace vgpu::client {

uint32_t Slabs::nextGeneration() {
  uint32_t generation;
  do generation = generations.fetch_add(1, std::memory_order_relaxed) + 1;
  while (generation <= 1);  // wrapped around
  return generation;
}

std::optional<uint32_t> Slabs::takeAs(uint32_t generation, Range range, uint32_t first) {
  for (uint32_t i = 0; i < range.count; ++i) {
    uint32_t slab = range.first + (first + i) % range.count;
    auto& busy = segment.slabState(slab).busy;
    uint32_t free = 0;
    if (busy.load(std::memory_order_relaxed) != 0 || !busy.compare_exchange_strong(free, generation, std::memory_order_acquire))
      continue;
    // The worker gave the slab back, which orders us after its last user. This load pairs with the store in lend() and creates the same
    // order within the program, where thread sanitizer can see it.
    lent[slab].generation.load(std::memory_order_acquire);
    return slab;
  }
  return std::nullopt;
}

// A stream gets only one of the kept slabs: another thread's copy in the same stream would wait for the first one anyway.
std::optional<uint32_t> Slabs::takeKept(uint32_t generation, User user) {
  for (uint32_t slab = sharedCount; slab < slabCount; ++slab)
    if (segment.slabState(slab).busy.load(std::memory_order_relaxed) != 0 && lent[slab].user.load(std::memory_order_relaxed) == user)
      return std::nullopt;
  auto slab = takeAs(generation, {sharedCount, keptCount}, 0);
  if (slab) lent[*slab].user.store(user, std::memory_order_relaxed);
  return slab;
}

std::optional<uint32_t> Slabs::take(uint32_t first, User user, const std::atomic<bool>& abandoned) {
  Backoff backoff;
  uint32_t generation = nextGeneration();
  while (!abandoned.load(std::memory_order_relaxed)) {
    if (auto slab = takeAs(generation, {0, sharedCount}, first)) return slab;
    if (auto slab = takeKept(generation, user)) return slab;
    // Polls: the GPU gives slabs back with a plain write, which wakes nobody.
    if (!backoff.spin()) std::this_thread::sleep_for(std::chrono::nanoseconds(backoff.sleepNanoseconds()));
  }
  return std::nullopt;
}

void Slabs::lend(uint32_t slab, unsigned device, uint64_t sequence, User user) {
  Lent& last = lent[slab];
  last.sequence.store(sequence, std::memory_order_relaxed);
  last.user.store(user, std::memory_order_relaxed);
  last.device.store(device, std::memory_order_relaxed);
  last.generation.store(segment.slabState(slab).busy.load(std::memory_order_relaxed), std::memory_order_release);
}

unsigned Slabs::countLent(User user) const {
  unsigned count = 0;
  for (uint32_t slab = 0; slab < slabCount; ++slab) {
    const uint32_t generation = lent[slab].generation.load(std::memory_order_acquire);
    if (generation != 0 && lent[slab].user.load(std::memory_order_relaxed) == user)
      count += segment.slabState(slab).busy.load(std::memory_order_relaxed) == generation;
  }
  return count;
}

void Slabs::reclaim(unsigned device, uint64_t sequence) {
  for (uint32_t slab = 0; slab < slabCount; ++slab) {
    Lent& last = lent[slab];
    uint32_t generation = last.generation.load(std::memory_order_acquire);
    if (generation == 0 || last.device.load(std::memory_order_relaxed) != device ||
        last.sequence.load(std::memory_order_relaxed) >= sequence)
      continue;
    segment.slabState(slab).busy.compare_exchange_strong(generation, 0, std::memory_order_release);
  }
}

}  // namespace vgpu::client
