#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "intercept/session/kinds/head.h"

namespace vgpu::client {

// Some of a device's multiprocessors, as CUdevSmResource describes them.
struct Multiprocessors {
  uint32_t count = 0, least = 0, alignment = 0;
};

// Where multiprocessors come from, by which a worker finds an equal number again: parts of a green context or a device, or all of it. The
// program keeps this in the bytes of a CUdevResource that are private to the driver.
struct ResourceOrigin {
  uint64_t parent = 0;  // the green context that was split; 0: the device
  uint64_t split = 0;   // the number of the cuDevSmResourceSplitByCount call; 0: not split
  uint32_t device = 0;
  uint32_t flags = 0, least = 0, groups = 0;  // arguments of that call
};

struct GreenContextState : ObjectHead {
  std::atomic<uint64_t> converted{0};  // the handle of its context (cuCtxFromGreenCtx)
  Multiprocessors has;

  void reset() { converted.store(0, std::memory_order_relaxed); }
};

struct ResourceDescriptorState : ObjectHead {
  ResourceOrigin origin;
  std::vector<uint32_t> parts;  // of the split, the remainder last; empty: not split
  uint32_t multiprocessors = 0;
};

}  // namespace vgpu::client
