#pragma once

#include "intercept/session/kinds/head.h"

namespace vgpu::client {

struct ModuleState : ObjectHead {
  uint64_t blob = 0;         // its image
  uint64_t codeLibrary = 0;  // the library (cuLibrary*) for which it was loaded, or 0

  void reset() { blob = codeLibrary = 0; }
};

}  // namespace vgpu::client
