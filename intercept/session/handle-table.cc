#include "intercept/session/handle-table.h"

#include <kj/debug.h>

namespace vgpu {

uint64_t HandleTable::reserve(api::Kind kind, unsigned device) {
  std::lock_guard lock(mutex);
  if (freeIndices.empty()) {
    auto base = static_cast<uint32_t>(owned.size()) * chunkEntries;
    KJ_REQUIRE(owned.size() < chunkCount, "a session has at most a million objects", chunkCount * chunkEntries);
    owned.push_back(std::make_unique<Chunk>());
    chunks[owned.size() - 1].store(owned.back().get(), std::memory_order_release);
    generations.resize(base + chunkEntries, 0);
    for (uint32_t i = chunkEntries; i > 0; --i) freeIndices.push_back(base + i - 1);
  }
  uint32_t index = freeIndices.back();
  freeIndices.pop_back();
  return makeHandle(kind, device, ++generations[index], index);
}

void HandleTable::abandon(uint64_t handle) {
  std::lock_guard lock(mutex);
  freeIndices.push_front(handleIndex(handle));
}

ObjectEntry* HandleTable::end(uint64_t handle) {
  uint32_t index = handleIndex(handle);
  if (index / chunkEntries >= owned.size()) return nullptr;
  ObjectEntry& entry = entryAt(index);
  if (entry.handle.load(std::memory_order_relaxed) != handle) return nullptr;
  entry.handle.store(0, std::memory_order_release);
  return &entry;
}

std::vector<uint64_t> HandleTable::live(api::Kind kind, unsigned device) const {
  std::lock_guard lock(mutex);
  std::vector<uint64_t> found;
  for (auto& chunk : owned)
    for (auto& entry : *chunk) {
      uint64_t handle = entry.handle.load(std::memory_order_acquire);
      if (handle != 0 && handleKind(handle) == static_cast<unsigned>(kind) && handleDevice(handle) == device)
        found.push_back(handle);
    }
  return found;
}

}  // namespace vgpu
