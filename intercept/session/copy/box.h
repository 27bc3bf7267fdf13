// Copies of rows and boxes, of memory and of arrays. If the GPU reaches both ends, one frame; to and from pageable memory
// through staging slabs (staged-copy.h).
#pragma once

#include "intercept/session/copy/engine.h"
#include "intercept/session/copy/staged-copy.h"

namespace vgpu::client {

// CUDA's answer. `stream` is a resolved handle.
CUresult copyBox(Thread& thread, const BoxEnd& destination, const BoxEnd& source, const BoxSize& size, uint64_t stream,
                 Completion completion);

}  // namespace vgpu::client
