// From virtual to real handles of the objects of one GPU, one table for each kind. A suspend drops it: restore fills it again by executing
// recipes.
//
// Owned by the thread of that GPU, which reads it without a lock. A frame may name an object of another GPU (a copy between arrays): get()
// then looks in that GPU's map, found by the handle. So the owner changes its map under `mutex`, and other threads read it under `mutex`;
// it is a leaf.
#pragma once

#include <cuda.h>

#include <array>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cuda-kinds.h"
#include "vgpu/api/handle.h"

namespace vgpu::stub {

// A frame named an object that the session does not have. The call fails with CUDA's own error for a bad handle.
struct BadHandle {
  api::Kind kind;
  uint64_t handle;
};

class HandleMap {
 public:
  using Table = std::unordered_map<uint64_t, uint64_t>;

  // Throws BadHandle if `handle` is in use: an honest client never reuses a live handle.
  void add(api::Kind kind, uint64_t handle, uint64_t real) {
    std::lock_guard lock(mutex);
    if (handle == 0 || !tables[static_cast<size_t>(kind)].emplace(handle, real).second) throw BadHandle{kind, handle};
  }
  // The real handle, also of an object of another GPU. Throws BadHandle if there is none.
  uint64_t get(api::Kind kind, uint64_t handle) const {
    auto found = of(kind).find(handle);
    return found != of(kind).end() ? found->second : getElsewhere(kind, handle);
  }
  uint64_t getOrNull(api::Kind kind, uint64_t handle) const { return handle == 0 ? 0 : get(kind, handle); }
  // Removes an object of this GPU, and returns its real handle. Throws BadHandle if there is none.
  uint64_t take(api::Kind kind, uint64_t handle) {
    std::lock_guard lock(mutex);
    auto taken = tables[static_cast<size_t>(kind)].extract(handle);
    if (taken.empty()) throw BadHandle{kind, handle};
    removeChildren(handle);
    return taken.mapped();
  }
  void remove(api::Kind kind, uint64_t handle) {
    std::lock_guard lock(mutex);
    tables[static_cast<size_t>(kind)].erase(handle);
    removeChildren(handle);
  }
  // Declares that the object `handle` ends with the object `parent`, of any kind.
  void endWith(uint64_t parent, api::Kind kind, uint64_t handle) {
    std::lock_guard lock(mutex);
    children.emplace(parent, std::pair{kind, handle});
  }
  void removeAll(api::Kind kind) {
    std::lock_guard lock(mutex);
    tables[static_cast<size_t>(kind)].clear();
    std::erase_if(children, [&](auto& child) { return child.second.first == kind; });
  }

  // Only for the thread of that GPU.
  const Table& of(api::Kind kind) const { return tables[static_cast<size_t>(kind)]; }

  // The maps of all GPUs of the session, by device, this one included. Once, before the first get().
  void setAll(std::vector<const HandleMap*> maps) { all = std::move(maps); }

 private:
  void removeChildren(uint64_t parent) {
    auto [from, to] = children.equal_range(parent);
    for (auto child = from; child != to; ++child) tables[static_cast<size_t>(child->second.first)].erase(child->second.second);
    children.erase(from, to);
  }
  uint64_t getElsewhere(api::Kind kind, uint64_t handle) const {
    unsigned device = handleDevice(handle);
    if (device >= all.size() || all[device] == this) throw BadHandle{kind, handle};
    std::lock_guard lock(all[device]->mutex);
    auto found = all[device]->of(kind).find(handle);
    if (found == all[device]->of(kind).end()) throw BadHandle{kind, handle};
    return found->second;
  }

  std::vector<const HandleMap*> all;
  mutable std::mutex mutex;
  std::array<Table, api::kindCount> tables;
  std::unordered_multimap<uint64_t, std::pair<api::Kind, uint64_t>> children;  // by parent
};

}  // namespace vgpu::stub
