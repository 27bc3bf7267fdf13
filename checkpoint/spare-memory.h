// Unused memory of a GPU, in which a live snapshot keeps changed chunks until they are written: a GPU copies within its memory many times
// faster than over a link.
//
// Owns driver objects, mapped at addresses that no program uses. Allocated while the program is held, when the needed size is known, and
// freed as soon as its content is written, because the program may allocate meanwhile. Used on the working thread, quiesced, and then on
// the thread that controls the worker. A suspend saves nothing of it.
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

  // Room for so many bytes, valid as long as this object; 0 if there is none. Call it in the GPU's context.
  CUdeviceptr take(size_t bytes);
  // Makes the GPU's context current on the calling thread. Throws kj::Exception.
  void select() const;
  // For copies from this memory; made at first use, in that context.
  CUstream stream();

 private:
  // The driver creates and maps a block in about a millisecond.
  static constexpr uint64_t blockBytes = 256 * MiB;
  static constexpr uint64_t base = windowArenaBase + windowArenaBytes, bytesOfDevice = 256 * GiB;

  bool reserve();
  bool grow();

  const stub::Driver& driver;
  const unsigned device;
  stub::PrimaryContext context;
  CUdeviceptr begin = 0;  // 0: no addresses reserved
  std::vector<CUmemGenericAllocationHandle> blocks;
  uint64_t used = 0;
  bool isFull = false;
  CUstream own = nullptr;
};

}  // namespace vgpu::checkpoint
