// References to textures and surfaces (CUtexref, CUsurfref): of a module by their names, or made by cuTexRefCreate.
#pragma once

#include <string>

#include "intercept/session/kinds/head.h"

namespace vgpu::client {

struct ReferenceState : ObjectHead {
  uint64_t module = 0;  // with which it ends; 0: none
  std::string name;     // in that module
  std::atomic<uint64_t> image{0};  // what it was last bound to: an array's handle, or a mipmapped one's; 0: neither

  void reset() {
    module = 0;
    name.clear();
    image.store(0, std::memory_order_relaxed);
  }
};

}  // namespace vgpu::client
