#pragma once

#include "intercept/session/kinds/head.h"

namespace vgpu::client {

struct ModuleState : ObjectHead {
  uint64_t blob = 0;  // its image

  void reset() { blob = 0; }
};

}  // namespace vgpu::client
