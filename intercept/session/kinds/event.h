#pragma once

#include <cuda.h>

#include "intercept/session/event-record.h"
#include "intercept/session/kinds/head.h"

namespace vgpu::client {

struct EventState : ObjectHead {
  std::atomic<uint64_t> stream{0};  // in which it was last recorded
  std::atomic<uint32_t> flags{0};
  EventRecord record;

  // With other sessions, which may record it too: the driver is asked then.
  bool isShared() const { return (flags.load(std::memory_order_relaxed) & CU_EVENT_INTERPROCESS) != 0; }

  void reset() {
    stream.store(0, std::memory_order_relaxed);
    record.reset();
  }
};

}  // namespace vgpu::client
