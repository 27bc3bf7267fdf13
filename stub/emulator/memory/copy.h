// Copies and fills as operations of a stream.
#pragma once

#include "stub/emulator/memory/span.h"
#include "stub/emulator/stream/stream.h"

namespace vgpu::emulator::api {

enum class Waiting { async, sync };  // whether the entry promises to return at once or with the copy done

// One-dimensional copy. An asynchronous one from or to pageable memory is finished, or its source taken, before this
// returns: the caller may reuse the memory at once, as CUDA says.
void submitCopy(Stream&, Waiting, MemorySpan to, MemorySpan from, const CUDA_MEMCPY3D& described);

// A fill of `height` rows of `width` values, `pitch` bytes apart.
struct Fill {
  uint64_t address, pitch;
  uint32_t value;
  unsigned valueBytes;
  uint64_t width, height;
};
Operation fillOperation(Context&, const Fill&);

// The most general copy: rows of `widthBytes`, `height` rows a slice, `depth` slices.
Operation copy3dOperation(Context&, const CUDA_MEMCPY3D&);

}  // namespace vgpu::emulator::api
