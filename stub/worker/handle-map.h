// From virtual to real handles, one table a kind. Owned and used by the working thread alone. A suspend drops it: restore
// fills it again by executing recipes.
#pragma once

#include <cuda.h>

#include <array>
#include <unordered_map>

#include "vgpu/api/annotations.capnp.h"
#include "vgpu/api/handle.h"

namespace vgpu::stub {

// A frame named an object that the session does not have. The call that named it fails with CUDA's own error.
struct BadHandle {
  api::Kind kind;
  uint64_t handle;
};

class HandleMap {
 public:
  using Table = std::unordered_map<uint64_t, uint64_t>;

  // Throws BadHandle where `handle` is taken already: an honest client never reuses one that lives.
  void add(api::Kind kind, uint64_t handle, uint64_t real) {
    if (handle == 0 || !tables[static_cast<size_t>(kind)].emplace(handle, real).second) throw BadHandle{kind, handle};
  }
  // The real handle. Throws BadHandle where there is none.
  uint64_t get(api::Kind kind, uint64_t handle) const {
    auto found = of(kind).find(handle);
    if (found == of(kind).end()) throw BadHandle{kind, handle};
    return found->second;
  }
  uint64_t getOrNull(api::Kind kind, uint64_t handle) const { return handle == 0 ? 0 : get(kind, handle); }
  void remove(api::Kind kind, uint64_t handle) { tables[static_cast<size_t>(kind)].erase(handle); }
  // All handles of `kind` that were made on `device`. Not for memory, whose handle is its address.
  void removeOf(api::Kind kind, unsigned device) {
    std::erase_if(tables[static_cast<size_t>(kind)], [&](auto& entry) { return handleDevice(entry.first) == device; });
  }

  const Table& of(api::Kind kind) const { return tables[static_cast<size_t>(kind)]; }

 private:
  static constexpr size_t kinds = static_cast<size_t>(api::Kind::SURFACE) + 1;
  std::array<Table, kinds> tables;
};

}  // namespace vgpu::stub
