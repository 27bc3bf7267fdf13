// What the client keeps of every object of any kind. A kind's own state derives from it (kinds.h).
#pragma once

#include <atomic>
#include <cstdint>

#include "vgpu/api/handle.h"

namespace vgpu::client {

struct ObjectHead {
  std::atomic<uint64_t> handle{0};   // 0: free
  std::atomic<uint64_t> context{0};  // in which it was made, and with which it ends; 0: it ends with another object
  uint32_t generation = 0, nextFree = 0;  // private to the table

  // For a live object.
  unsigned device() const { return handleDevice(handle.load(std::memory_order_relaxed)); }

  // Prepares the state for a new object. A kind with its own state has its own reset().
  void reset() {}
};

}  // namespace vgpu::client
