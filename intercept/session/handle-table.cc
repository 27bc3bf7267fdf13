#include "intercept/session/handle-table.h"

#include <kj/debug.h>

namespace vgpu::client {

HandleTable::HandleTable()
    : byKind(std::apply([](auto&... each) { return std::array<Handles*, api::kindCount>{&each...}; }, tables)) {}

uint64_t Handles::reserve(api::Kind kind, unsigned device) {
  std::lock_guard lock(mutex);
  if (firstFree == none) addPlaces();
  uint32_t index = firstFree;
  ObjectHead& head = headAt(index);
  firstFree = head.nextFree;
  resetAt(index);
  return makeHandle(kind, device, ++head.generation, index);
}

void Handles::publish(uint64_t handle, uint64_t context) {
  ObjectHead& head = headAt(handleIndex(handle));
  head.context.store(context, std::memory_order_relaxed);
  head.handle.store(handle, std::memory_order_release);
}

void Handles::addPlaces() {
  const uint32_t first = places.load(std::memory_order_relaxed);
  KJ_REQUIRE(first < chunkCount * chunkPlaces, "a session has at most a million objects of a kind", first);
  addChunk(first / chunkPlaces);
  places.store(first + chunkPlaces, std::memory_order_release);
  for (uint32_t i = 0; i < chunkPlaces; ++i) putLast(first + i);
}

// The handle freed first is reused first, so that a stale handle stays invalid as long as possible.
void Handles::putLast(uint32_t index) {
  headAt(index).nextFree = none;
  (firstFree == none ? firstFree : headAt(lastFree).nextFree) = index;
  lastFree = index;
}

void Handles::abandon(uint64_t handle) {
  std::lock_guard lock(mutex);
  putLast(handleIndex(handle));
}

bool Handles::isLive(uint64_t handle) const {
  const uint32_t index = handleIndex(handle);
  return index < places.load(std::memory_order_acquire) && headAt(index).handle.load(std::memory_order_acquire) == handle;
}

// Release: a thread that finds the object ended (acquire) also sees what was done before.
bool Handles::retire(uint64_t handle) {
  const uint32_t index = handleIndex(handle);
  uint64_t expected = handle;
  return index < places.load(std::memory_order_acquire) &&
         headAt(index).handle.compare_exchange_strong(expected, 0, std::memory_order_acq_rel);
}

std::vector<uint64_t> Handles::live(unsigned device, uint64_t context) const {
  std::lock_guard lock(mutex);
  std::vector<uint64_t> found;
  for (uint32_t i = 0; i < places.load(std::memory_order_relaxed); ++i) {
    const ObjectHead& head = headAt(i);
    const uint64_t handle = head.handle.load(std::memory_order_acquire);
    if (handle == 0 || handleDevice(handle) != device) continue;
    if (context == 0 || head.context.load(std::memory_order_relaxed) == context) found.push_back(handle);
  }
  return found;
}

}  // namespace vgpu::client
