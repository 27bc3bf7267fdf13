// State of the kinds on one GPU besides handles: one structure for each kind, found by its type.
//
// Used by the thread of that GPU, and while no calls are executed. State that other threads read meanwhile is a member of Execution.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>

namespace vgpu::stub {

class Kept {
 public:
  // The structure of that type, constructed from `arguments` at the first call.
  template <typename State, typename... Arguments>
  State& of(Arguments&&... arguments) {
    auto& state = states[&key<State>];
    if (state == nullptr) state = std::make_shared<State>(std::forward<Arguments>(arguments)...);
    return *static_cast<State*>(state.get());
  }

  // In a structure that is a map, the element with that handle, or null.
  template <typename Map>
  typename Map::mapped_type* find(uint64_t handle) {
    auto& map = of<Map>();
    auto found = map.find(handle);
    return found == map.end() ? nullptr : &found->second;
  }

 private:
  template <typename State>
  static inline char key = 0;  // its address identifies the type

  std::map<const char*, std::shared_ptr<void>> states;
};

}  // namespace vgpu::stub
