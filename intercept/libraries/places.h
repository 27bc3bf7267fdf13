// Memory of descriptions of which the program has the address only. It stays mapped, and is zero while no description lies in it:
// whoever uses a description that has been destroyed finds no handle there, and is refused. The next one may get the same memory,
// as natively. And what was made last in memory of the program's own, of which nobody is told when it ends.
//
// For the whole process; any thread.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "vgpu/api/library.h"

namespace vgpu::client {

class Places {
 public:
  // Room for a description of any type, all zeros; nullptr if the process has no memory left.
  void* take() {
    std::lock_guard lock(mutex);
    if (spare.empty()) return std::calloc(1, bytes);
    void* place = spare.back();
    spare.pop_back();
    return place;
  }
  void giveBack(void* place) {
    std::memset(place, 0, bytes);
    std::lock_guard lock(mutex);
    spare.push_back(place);
  }

  // The virtual handle of what was made last in the program's memory there; 0 if nothing was.
  uint64_t madeIn(const void* place) {
    std::lock_guard lock(mutex);
    auto found = made.find(place);
    return found == made.end() ? 0 : found->second;
  }
  uint64_t note(const void* place, uint64_t handle) {
    std::lock_guard lock(mutex);
    return made[place] = handle;
  }

 private:
  const size_t bytes = std::ranges::max(api::objectTypes, {}, &api::ObjectType::inPlaceBytes).inPlaceBytes;
  std::mutex mutex;
  std::vector<void*> spare;
  std::unordered_map<const void*, uint64_t> made;
};

}  // namespace vgpu::client
