#include "intercept/session/handle-table.h"

#include <kj/debug.h>

namespace vgpu::client {

uint64_t HandleTable::reserve(api::Kind kind, unsigned device) {
  std::lock_guard lock(mutex);
  if (firstFree == none) addChunk();
  uint32_t index = firstFree;
  ObjectEntry& entry = entryAt(index);
  firstFree = entry.nextFree;
  return makeHandle(kind, device, ++entry.generation, index);
}

void HandleTable::addChunk() {
  KJ_REQUIRE(owned.size() < chunkCount, "a session has at most a million objects", chunkCount * chunkEntries);
  auto base = static_cast<uint32_t>(owned.size()) * chunkEntries;
  owned.push_back(std::make_unique<Chunk>());
  chunks[owned.size() - 1].store(owned.back().get(), std::memory_order_release);
  for (uint32_t i = 0; i < chunkEntries; ++i) putLast(base + i);
}

// The handle freed first is reused first, so that a stale handle stays invalid for long.
void HandleTable::putLast(uint32_t index) {
  entryAt(index).nextFree = none;
  (firstFree == none ? firstFree : entryAt(lastFree).nextFree) = index;
  lastFree = index;
}

void HandleTable::abandon(uint64_t handle) {
  std::lock_guard lock(mutex);
  putLast(handleIndex(handle));
}

ObjectEntry* HandleTable::end(uint64_t handle) {
  uint32_t index = handleIndex(handle);
  if (index / chunkEntries >= owned.size()) return nullptr;
  ObjectEntry& entry = entryAt(index);
  if (entry.handle.load(std::memory_order_relaxed) != handle) return nullptr;
  entry.handle.store(0, std::memory_order_release);
  return &entry;
}

std::vector<uint64_t> HandleTable::live(api::Kind kind, unsigned device, uint64_t context) const {
  std::lock_guard lock(mutex);
  std::vector<uint64_t> found;
  for (auto& chunk : owned)
    for (auto& entry : *chunk) {
      uint64_t handle = entry.handle.load(std::memory_order_acquire);
      if (handle == 0 || handleKind(handle) != static_cast<unsigned>(kind) || handleDevice(handle) != device) continue;
      if (context == 0 || entry.context.load(std::memory_order_relaxed) == context) found.push_back(handle);
    }
  return found;
}

}  // namespace vgpu::client
