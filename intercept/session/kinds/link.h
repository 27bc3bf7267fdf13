#pragma once

#include <memory>

#include "intercept/session/kinds/head.h"
#include "intercept/session/modules/linker.h"

namespace vgpu::client {

struct LinkState : ObjectHead {
  std::unique_ptr<Linker> linker;  // never null while the link is live
  void reset() { linker.reset(); }
};

}  // namespace vgpu::client
