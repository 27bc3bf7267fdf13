// Copies in two and three dimensions, of memory and of arrays: one frame if the GPU can access both ends; to and from pageable
// memory through staging slabs (staged-copy.h).
#pragma once

#include "intercept/session/copy/engine.h"
#include "intercept/session/copy/staged-copy.h"

namespace vgpu::client {

// CUDA's answer. `stream` is a resolved handle.
CUresult copyBox(Thread& thread, const BoxEnd& destination, const BoxEnd& source, const BoxSize& size, uint64_t stream,
                 Completion completion);

}  // namespace vgpu::client
