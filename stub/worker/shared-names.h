// By which names the objects of a session are shared: those that it gives, and those that it has from others. By the object's
// handle, which of memory is its address.
//
// Any GPU's thread, and those of slow calls. `mutex` is a leaf. Of this a suspend keeps nothing (exchange.h).
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "stub/worker/exchange.h"

namespace vgpu::stub {

class SharedNames {
 public:
  void add(api::Kind kind, uint64_t handle, const SharedName& name, bool isGiven) {
    std::lock_guard lock(mutex);
    all.insert_or_assign({kind, handle}, Entry{name, isGiven});
  }
  // Whether the object is given to others, or had from others.
  bool has(api::Kind kind, uint64_t handle) const {
    std::lock_guard lock(mutex);
    return all.contains({kind, handle});
  }
  // Ends what there is of an object, if there is any: the name, and whether it was given.
  std::optional<std::pair<SharedName, bool>> take(api::Kind kind, uint64_t handle) {
    std::lock_guard lock(mutex);
    auto found = all.find({kind, handle});
    if (found == all.end()) return std::nullopt;
    std::pair<SharedName, bool> taken{found->second.name, found->second.isGiven};
    all.erase(found);
    return taken;
  }
  void clear() {
    std::lock_guard lock(mutex);
    all.clear();
  }

 private:
  struct Entry {
    SharedName name;
    bool isGiven;
  };
  mutable std::mutex mutex;
  std::map<std::pair<api::Kind, uint64_t>, Entry> all;
};

}  // namespace vgpu::stub
