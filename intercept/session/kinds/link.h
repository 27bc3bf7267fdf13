#pragma once

#include <memory>

#include "intercept/session/kinds/head.h"
#include "intercept/session/modules/linker.h"

namespace vgpu::client {

struct LinkState : ObjectHead {
  std::unique_ptr<Linker> linker;  // of a live one never null
  void reset() { linker.reset(); }
};

}  // namespace vgpu::client
