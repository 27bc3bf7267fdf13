// Memory of descriptions of which the program knows the address only. It stays allocated, and is zero while it holds no description: a use
// of a destroyed description finds no handle there and is refused. A later description may get the same memory, as natively. Also the
// latest object made in each piece of the program's own memory, because nothing reports when that memory is freed.
//
// One for the process; any thread.
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
  // Zeroed memory for a description of any type; nullptr if the process is out of memory.
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

  // The virtual handle of the latest object made in the program's memory at `place`; 0 if none.
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
