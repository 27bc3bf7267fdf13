#pragma once

#include "intercept/session/kinds/head.h"
#include "intercept/session/latest-number.h"
#include "intercept/session/stream-depth.h"

namespace vgpu::client {

struct StreamState : ObjectHead {
  LatestNumber lastWork;               // sequence number of its last frame
  std::atomic<uint64_t> knownDone{0};  // all work up to this sequence number is known to have ended
  std::atomic<uint32_t> flags{0};
  std::atomic<int32_t> priority{0};
  StreamDepth depth;

  void reset() {
    lastWork.reset();
    knownDone.store(0, std::memory_order_relaxed);
    flags.store(0, std::memory_order_relaxed);
    priority.store(0, std::memory_order_relaxed);
    depth.reset();
  }
};

}  // namespace vgpu::client
