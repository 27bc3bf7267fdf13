// Memory of descriptions of which the program has the address only. It stays mapped, and is zero while no description lies in it:
// whoever uses a description that has been destroyed finds no handle there, and is refused. The next one may get the same memory,
// as natively.
//
// For the whole process; any thread.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <mutex>
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

 private:
  const size_t bytes = std::ranges::max(api::objectTypes, {}, &api::ObjectType::inPlaceBytes).inPlaceBytes;
  std::mutex mutex;
  std::vector<void*> spare;
};

}  // namespace vgpu::client
