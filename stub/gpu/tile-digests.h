// Digests of device memory, computed by the GPU itself for each tile (vgpu/store/chunk-digest.h), at the speed of its memory.
//
// The kernel is PTX, so it runs on any GPU and on the emulated device; it has no variables and gets its key as parameters. Used by the
// thread that saves, in the device's context. Nothing of it survives a suspend.
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

  // Loads the kernel, unless it is loaded. Done when the GPU is first used, because compiling takes long, and so that in every worker it is
  // loaded before the program's modules. False if the driver refuses the kernel: then the host computes the digests.
  bool load();

  // Makes the GPU write the digests of `tiles` tiles from `address`, a multiple of 16, to `out`, which is memory that it can write. CUDA's
  // result; complete when `stream` is.
  CUresult digest(const Digester& digester, uint64_t address, uint32_t tiles, CUdeviceptr out, CUstream stream) const;

 private:
  const Driver& driver;
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  bool tried = false;
};

}  // namespace vgpu::stub
