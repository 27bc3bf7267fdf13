// Copies and fills as operations of a stream.
#pragma once

#include "stub/emulator/memory/span.h"
#include "stub/emulator/stream/stream.h"

namespace vgpu::emulator::api {

enum class Waiting { async, sync };  // whether the entry may return before the copy is done

// Submits a one-dimensional copy. An asynchronous copy from or to pageable memory is done, or its source buffered, before this returns, so
// the caller may reuse the memory at once, as CUDA promises.
void submitCopy(Stream&, Waiting, MemorySpan to, MemorySpan from, const CUDA_MEMCPY3D& described);

// A fill of `height` rows of `width` values, `pitch` bytes apart.
struct Fill {
  uint64_t address, pitch;
  uint32_t value;
  unsigned valueBytes;
  uint64_t width, height;
};
Operation fillOperation(Context&, const Fill&);

// The most general copy: rows of `widthBytes`, `height` rows in each slice, `depth` slices.
Operation copy3dOperation(Context&, const CUDA_MEMCPY3D&);

}  // namespace vgpu::emulator::api
