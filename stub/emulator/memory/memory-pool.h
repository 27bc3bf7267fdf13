// Stream-ordered memory: pools that cuMemAllocAsync takes from. Memory is taken when the call is made and given back
// when the stream reaches the free, so no range is handed out again before its last use has ended.
#pragma once

#include <array>
#include <atomic>

#include "stub/emulator/driver/context.h"

namespace vgpu::emulator::api {

struct MemoryPool {
  explicit MemoryPool(Device& device) : device(device) {}
  Device& device;
  CUmemoryPool handle = nullptr;
  bool isDefault = false;

  std::atomic<uint64_t> releaseThreshold{0};
  std::array<std::atomic<int>, 3> reuse{1, 1, 1};  // the three CU_MEMPOOL_ATTR_REUSE_* flags
  std::atomic<uint64_t> used{0}, usedHigh{0};      // what is allocated is what is reserved: nothing is kept back
  void add(uint64_t bytes);
};

}  // namespace vgpu::emulator::api
