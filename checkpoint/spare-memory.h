// Memory of a GPU that nobody has, in which a live snapshot keeps what has changed until it is written: a GPU copies within its
// memory many times faster than over a link.
//
// Owns objects of the driver's, mapped at addresses that no program has. Taken in the hold, when it is known how much is needed,
// and given back as soon as it is written, because the program may ask for it meanwhile. On the working thread, quiesced, and
// then on the thread that controls the worker. Of this a suspend keeps nothing.
#pragma once

#include <vector>

#include "stub/gpu/primary-context.h"
#include "vgpu/base/sizes.h"
#include "vgpu/wire/arena.h"

namespace vgpu::checkpoint {

class SpareMemory {
 public:
  SpareMemory(const stub::Driver& driver, unsigned device) : driver(driver), device(device), context(driver, device) {}
  ~SpareMemory();
  SpareMemory(const SpareMemory&) = delete;
  SpareMemory& operator=(const SpareMemory&) = delete;

  // Room for so many bytes, as long as this lives; 0 if there is none. In the GPU's context.
  CUdeviceptr take(size_t bytes);
  // Makes its GPU's context the calling thread's. Throws kj::Exception.
  void select() const;
  // For copies from it; made when it is first asked for, in that context.
  CUstream stream();

 private:
  // The driver makes and maps one in about a millisecond.
  static constexpr uint64_t blockBytes = 256 * MiB;
  static constexpr uint64_t base = windowArenaBase + windowArenaBytes, bytesOfDevice = 256 * GiB;

  bool reserve();
  bool grow();

  const stub::Driver& driver;
  const unsigned device;
  stub::PrimaryContext context;
  CUdeviceptr begin = 0;  // 0: no addresses
  std::vector<CUmemGenericAllocationHandle> blocks;
  uint64_t used = 0;
  bool isFull = false;
  CUstream own = nullptr;
};

}  // namespace vgpu::checkpoint
