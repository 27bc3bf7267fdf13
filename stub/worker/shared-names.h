// The names by which objects of the session are shared: those that it gives to other sessions, and those that it has from others. Found by
// the object's handle; for memory that is its address.
//
// Physical memory that the giving session has released is owned by one of the sessions that have it: that session saves the bytes, and its
// restored worker makes the memory and gives it to the others. Several objects of this session may be the same memory.
//
// Any GPU's thread, and the threads of slow calls. `mutex` is a leaf. A suspend keeps only the owned names, with the physical objects
// (kinds/physical.cc): recipes give and take the rest again.
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
  // Whether the object is given to other sessions, or had from one.
  bool has(api::Kind kind, uint64_t handle) const {
    std::lock_guard lock(mutex);
    return all.contains({kind, handle});
  }
  // Removes an object's entry, if there is one: returns its name, and whether it was given.
  std::optional<std::pair<SharedName, bool>> take(api::Kind kind, uint64_t handle) {
    std::lock_guard lock(mutex);
    auto found = all.find({kind, handle});
    if (found == all.end()) return std::nullopt;
    std::pair<SharedName, bool> taken{found->second.name, found->second.isGiven};
    all.erase(found);
    return taken;
  }
  // The name of a shared object, and whether it is given.
  std::optional<std::pair<SharedName, bool>> find(api::Kind kind, uint64_t handle) const {
    std::lock_guard lock(mutex);
    auto found = all.find({kind, handle});
    return found == all.end() ? std::nullopt : std::optional(std::pair(found->second.name, found->second.isGiven));
  }

  // Physical memory whose giving session has released it and that this session must save; the daemon says so before a save.
  void own(std::set<SharedName> names) {
    std::lock_guard lock(mutex);
    owned = std::move(names);
  }
  // The names that a snapshot lists as owned, before its recipes are executed.
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
  // The first object of a restored session that is this inherited memory; sets it to `handle` if there was none.
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
