// Digests of device memory by the GPU itself: those of its tiles (vgpu/store/chunk-digest.h), at the speed of the memory.
//
// The kernel is PTX, so it runs on any GPU and on the emulated device; it has no variables and takes its key as parameters. Of the thread
// that saves, in the device's context. Nothing of it survives a suspend.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "stub/driver/driver.h"
#include "vgpu/store/chunk-digest.h"

namespace vgpu::stub {

class TileDigests {
 public:
  explicit TileDigests(const Driver& driver) : driver(driver) {}
  ~TileDigests();  // in the device's context
  TileDigests(const TileDigests&) = delete;
  TileDigests& operator=(const TileDigests&) = delete;

  // Loads the kernel, unless it is loaded: when the GPU is first used, because compiling takes long, and so that it is before the
  // program's modules in every worker. A driver that does not take the kernel has none: digests are the host's work then. Whether it is
  // there.
  bool load();

  // Has the GPU write the digests of `tiles` tiles from `address`, which is a multiple of 16, to `out`, memory that it can write. CUDA's
  // answer; done when `stream` is.
  CUresult digest(const Digester& digester, uint64_t address, uint32_t tiles, CUdeviceptr out, CUstream stream) const;

 private:
  const Driver& driver;
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  bool tried = false;
};

}  // namespace vgpu::stub
