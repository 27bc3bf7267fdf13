#include "checkpoint/pinned-memory.h"

#include <sys/mman.h>

#include "checkpoint/staging-ring.h"
#include "vgpu/base/fail.h"

namespace vgpu::checkpoint {

PinnedMemory::PinnedMemory(const stub::Driver& driver, const MemoryFile& file) : driver(driver), mapping(file) {
  madvise(mapping.data(), mapping.bytes(), MADV_HUGEPAGE);
  isRegistered = driver.cuMemHostRegister_v2(mapping.data(), mapping.bytes(), forAllGpus) == CUDA_SUCCESS;
}

PinnedMemory::~PinnedMemory() {
  if (isRegistered) driver.cuMemHostUnregister(mapping.data());
}

std::span<std::byte> PinnedRoom::at(uint64_t offset, size_t bytes) const {
  if (offset > memory.size() || bytes > memory.size() - offset)
    fail("vgpud has sent a position outside of its pinned memory");
  return memory.subspan(offset, bytes);
}

}  // namespace vgpu::checkpoint
