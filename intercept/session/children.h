// Objects that the program asks for by what they are called within another one: a function by its name in a module, a
// level by its number in a mipmapped array. One handle a name.
//
// Owned by the session, for any thread; `mutex` is a leaf. All of it stays in the program's process over a suspend.
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
  // The handle that add() was given; 0 if nobody has asked for that name.
  template <typename Wanted>
  uint64_t find(uint64_t parent, const Wanted& name) const {
    std::lock_guard lock(mutex);
    auto of = handles.find(parent);
    if (of == handles.end()) return 0;
    auto found = of->second.find(name);
    return found == of->second.end() ? 0 : found->second;
  }
  // The handle that the name has from here on: `handle`, or that of a thread that came first.
  uint64_t add(uint64_t parent, Name name, uint64_t handle) {
    std::lock_guard lock(mutex);
    return handles[parent].try_emplace(std::move(name), handle).first->second;
  }
  // Forgets a parent. Returns the handles of its children.
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
