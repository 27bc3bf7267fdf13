// By which names the objects of a session are shared: those that it gives, and those that it has from others. By the object's
// handle, which of memory is its address.
//
// Physical memory of which the session that gave it has let go is owned by one of those that have it: it saves the bytes, and its
// restored worker makes the memory and gives it to the others. Several objects of this session may be that same memory.
//
// Any GPU's thread, and those of slow calls. `mutex` is a leaf. Of this a suspend keeps what is owned, with the physical objects
// (kinds/physical.cc), and else nothing: recipes give and take the same again.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <set>
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
  // The name of an object that is given, or had from others, and whether it is given.
  std::optional<std::pair<SharedName, bool>> find(api::Kind kind, uint64_t handle) const {
    std::lock_guard lock(mutex);
    auto found = all.find({kind, handle});
    return found == all.end() ? std::nullopt : std::optional(std::pair(found->second.name, found->second.isGiven));
  }

  // What is had from sessions that have let go of it, and is this one's to save: as the daemon says before a save.
  void own(std::set<SharedName> names) {
    std::lock_guard lock(mutex);
    owned = std::move(names);
  }
  // What a snapshot says of that, before its recipes are executed.
  void inherit(const std::set<SharedName>& names) {
    std::lock_guard lock(mutex);
    for (auto& name : names) inherited.emplace(name, std::nullopt);
  }
  bool inherits(const SharedName& name) const {
    std::lock_guard lock(mutex);
    return inherited.contains(name);
  }
  bool saves(const SharedName& name) const {
    std::lock_guard lock(mutex);
    return owned.contains(name) || inherited.contains(name);
  }
  // The first object of a restored session that is inherited memory; it is `handle` if there was none.
  uint64_t firstOf(const SharedName& name, uint64_t handle) {
    std::lock_guard lock(mutex);
    auto& first = inherited.at(name);
    if (!first) first = handle;
    return *first;
  }
  void clear() {
    std::lock_guard lock(mutex);
    all.clear();
    owned.clear();
    inherited.clear();
  }

 private:
  struct Entry {
    SharedName name;
    bool isGiven;
  };
  mutable std::mutex mutex;
  std::map<std::pair<api::Kind, uint64_t>, Entry> all;
  std::set<SharedName> owned;
  std::map<SharedName, std::optional<uint64_t>> inherited;
};

}  // namespace vgpu::stub
