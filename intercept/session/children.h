// Objects that the program looks up by a key within a parent: a function by its name in a module, a level by its number in a mipmapped
// array, a plane in an array. Each key has one handle.
//
// Owned by the session. Any thread; `mutex` is a leaf lock. Stays in the program's process over a suspend.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace vgpu::client {

template <typename Name>
class Children {
 public:
  // The handle added for that key; 0 if there is none.
  template <typename Wanted>
  uint64_t find(uint64_t parent, const Wanted& name) const {
    std::lock_guard lock(mutex);
    auto of = handles.find(parent);
    if (of == handles.end()) return 0;
    auto found = of->second.find(name);
    return found == of->second.end() ? 0 : found->second;
  }
  // Adds `handle` for the key. Returns the key's handle: `handle`, or the one that another thread added before.
  uint64_t add(uint64_t parent, Name name, uint64_t handle) {
    std::lock_guard lock(mutex);
    return handles[parent].try_emplace(std::move(name), handle).first->second;
  }
  // Removes a parent. Returns the handles of its children.
  std::vector<uint64_t> drop(uint64_t parent) {
    std::lock_guard lock(mutex);
    std::vector<uint64_t> dropped;
    if (auto of = handles.extract(parent))
      for (auto& [name, handle] : of.mapped()) dropped.push_back(handle);
    return dropped;
  }

 private:
  mutable std::mutex mutex;
  std::unordered_map<uint64_t, std::map<Name, uint64_t, std::less<>>> handles;
};

}  // namespace vgpu::client
