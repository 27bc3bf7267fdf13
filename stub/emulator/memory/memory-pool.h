// Stream-ordered memory: pools for cuMemAllocAsync. Memory is allocated when the call is made and freed when the stream reaches the free,
// so no range is reused before its last use has ended.
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
  std::atomic<uint64_t> used{0}, usedHigh{0};      // allocated equals reserved: freed memory is never kept
  void add(uint64_t bytes);
};

}  // namespace vgpu::emulator::api
