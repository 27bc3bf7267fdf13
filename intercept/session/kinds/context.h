#pragma once

#include "intercept/session/kinds/head.h"

namespace vgpu::client {

struct ContextState : ObjectHead {
  std::atomic<uint32_t> flags{0};  // as the program gave them

  void reset() { flags.store(0, std::memory_order_relaxed); }
};

}  // namespace vgpu::client
