#include "checkpoint/staging-ring.h"

#include <errno.h>
#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "vgpu/base/fail.h"
#include "vgpu/base/sizes.h"
#include "vgpu/snapshot/chunk.h"

namespace vgpu::checkpoint {

namespace {

// A thread processes one slot while its next ones are filled; the GPU always has a free slot to copy to.
constexpr size_t slotsOfThread = 4, slotsOfGpu = 8;
// The system allocates memory at a few GB/s, so each slot must be used for at least so many chunks.
constexpr size_t chunksOfSlot = 8;

}  // namespace

size_t StagingRing::slotsFor(unsigned threads, size_t chunks) {
  size_t most = slotsOfThread * threads + slotsOfGpu;
  return std::min({most, std::max(slotsOfGpu, chunks / chunksOfSlot), std::max(chunks, size_t{1})});
}

size_t StagingRing::worth(size_t pieces, uint64_t bytes) {
  return std::max<size_t>(std::min(pieces, slotsOfGpu), roundUp(bytes, snapshot::chunkBytes) / snapshot::chunkBytes);
}

StagingRing::StagingRing(const stub::Driver* driver, size_t slots) : driver(driver), bytes(slots * snapshot::chunkBytes) {
  void* mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED)
    fail(fmt::format(
        "the worker cannot get {} MiB of host memory for its buffers: {}. Free memory on its host, or raise the worker's limit",
        bytes / MiB, std::strerror(errno)));
  memory = static_cast<std::byte*>(mapped);
  madvise(memory, bytes, MADV_HUGEPAGE);
  // Without pinning, the driver makes an additional copy: slower, but correct.
  pinned = driver != nullptr && driver->cuMemHostRegister_v2(memory, bytes, forAllGpus) == CUDA_SUCCESS;
  for (size_t at = 0; at < bytes; at += snapshot::chunkBytes) this->slots.push_back({.number = this->slots.size(), .memory = memory + at});
}

StagingRing::~StagingRing() {
  if (pinned) driver->cuMemHostUnregister(memory);
  munmap(memory, bytes);
}

CUdeviceptr StagingRing::onGpu() const {
  CUdeviceptr address = 0;
  return pinned && driver->cuMemHostGetDevicePointer_v2(&address, memory, 0) == CUDA_SUCCESS ? address : 0;
}

}  // namespace vgpu::checkpoint
