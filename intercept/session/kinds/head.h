// What the client keeps of every object, of whatever kind. A kind's own state derives from it (kinds.h).
#pragma once

#include <atomic>
#include <cstdint>

#include "vgpu/api/handle.h"

namespace vgpu::client {

struct ObjectHead {
  std::atomic<uint64_t> handle{0};   // 0: free
  std::atomic<uint64_t> context{0};  // in which it was made and with which it ends; 0: it ends with another object
  uint32_t generation = 0, nextFree = 0;  // the table's own

  // Of a live object.
  unsigned device() const { return handleDevice(handle.load(std::memory_order_relaxed)); }

  // Makes the state a new object's. A kind with state of its own has one too.
  void reset() {}
};

}  // namespace vgpu::client
