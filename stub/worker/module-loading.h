// One load of a module: which part of its image the driver gets, where its variables are placed, and whether the node keeps the image.
//
// Made by the thread of its GPU; load() is a slow call (slow-calls.h). The image stays valid meanwhile: it is dropped only after the
// pending slow calls.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "cuda-frames.h"
#include "cuda-methods.h"
#include "stub/worker/blob.h"
#include "stub/worker/kinds/link.h"

namespace vgpu::stub {

class Execution;

struct ModuleLoading {
  ModuleLoading(const api::FrameReader<api::Cuda::ModuleLoadParams>& p, Blob& blob)
      : handle(p.getModule()), number(p.getBlob()), library(p.getLibrary()), blob(blob), jit(p.getOptions(), p.getValues()) {}

  const uint64_t handle, number, library;  // number: of the image; library: the program's, 0 if it has one device
  Blob& blob;
  JitCall jit;
  CUmodule real = nullptr;

  // CUDA's result.
  CUresult load(Execution& on);

 private:
  CUresult give(Execution& on, uint64_t shares, std::span<const std::byte> code);
  void keep(Execution& on, const ImageCode& code);
};

}  // namespace vgpu::stub
