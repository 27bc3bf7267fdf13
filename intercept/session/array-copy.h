// Copies of which at least one end is an array: between arrays and memory of the GPU's by one frame; to and from
// pageable memory through staging slabs, rows packed.
#pragma once

#include "intercept/session/copy-engine.h"

namespace vgpu {

// An array with a place in it (`x` in bytes), or memory.
struct BoxEnd {
  uint64_t array = 0;  // virtual handle as the program gave it; 0: memory
  uint64_t x = 0, row = 0, slice = 0;
  RowsEnd memory{};
};

struct BoxSize {
  uint64_t width, height, depth;  // bytes, rows, slices
};

// CUDA's answer. `stream` is a resolved handle.
CUresult copyBox(Thread& thread, const BoxEnd& destination, const BoxEnd& source, const BoxSize& size, uint64_t stream,
                 Completion completion);

}  // namespace vgpu
