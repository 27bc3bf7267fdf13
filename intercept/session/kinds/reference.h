// Texture and surface references (CUtexref, CUsurfref): those of a module, looked up by name, and those made by cuTexRefCreate.
#pragma once

#include <string>

#include "intercept/session/kinds/head.h"

namespace vgpu::client {

struct ReferenceState : ObjectHead {
  uint64_t module = 0;  // the module with which it ends; 0: none
  std::string name;     // its name in that module
  std::atomic<uint64_t> image{0};  // the handle of the array or mipmapped array to which it was last bound; 0: none

  void reset() {
    module = 0;
    name.clear();
    image.store(0, std::memory_order_relaxed);
  }
};

}  // namespace vgpu::client
