// Plain device memory of one device (cuMemAlloc and everything built on it): chunks of 2 MiB, divided as needed.
//
// Small allocations share chunks, a large one has chunks of its own. The lowest free address is used, so the same calls give the same
// addresses. A chunk is returned to the device with its last allocation.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "stub/emulator/memory/address-space.h"

namespace vgpu::emulator::api {

class DevicePool {
 public:
  DevicePool(Device& device, AddressSpace& space) : device(device), space(space) {}

  // Maps `bytes` of plain memory and returns its device address; refuses with CUDA_ERROR_OUT_OF_MEMORY.
  uint64_t allocate(uint64_t bytes, Context* context, CUmemoryPool pool = nullptr);
  // Frees the allocation: kernels may no longer access it, and its address may be used again. Refuses if no allocation begins at `address`.
  void free(uint64_t address);

 private:
  struct Chunk {
    MemoryLease lease;
    std::shared_ptr<HostView> view;
    std::map<uint64_t, uint64_t> taken;  // offset to rounded bytes
  };
  std::optional<uint64_t> findGap(const Chunk&, uint64_t bytes) const;
  uint64_t addChunk(uint64_t bytes);

  Device& device;
  AddressSpace& space;
  std::mutex mutex;
  std::map<uint64_t, Chunk> chunks;  // by device address
};

}  // namespace vgpu::emulator::api
