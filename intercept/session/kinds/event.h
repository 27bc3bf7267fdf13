#pragma once

#include <cuda.h>

#include "intercept/session/event-record.h"
#include "intercept/session/kinds/head.h"

namespace vgpu::client {

struct EventState : ObjectHead {
  std::atomic<uint64_t> stream{0};  // the stream in which it was last recorded
  std::atomic<uint32_t> flags{0};
  EventRecord record;

  // Whether other sessions may record it too: queries then ask the driver.
  bool isShared() const { return (flags.load(std::memory_order_relaxed) & CU_EVENT_INTERPROCESS) != 0; }

  void reset() {
    stream.store(0, std::memory_order_relaxed);
    record.reset();
  }
};

}  // namespace vgpu::client
