// How many blocks of a kernel fit a multiprocessor: always the driver's own reply, kept until the kernel changes.
#pragma once

#include "intercept/session/thread.h"

namespace vgpu::client {

struct ResidentBlock {
  int size;  // threads
  uint64_t sharedBytes;  // dynamic
  unsigned flags;  // CUoccupancy_flags
};

// CUDA's result; `blocks` is set on success. If the reply for this block is not known, one frame requests it together with those for all
// sizes that a program could try next, in multiples of a warp.
CUresult activeBlocks(Thread& thread, CUfunction function, const ResidentBlock& block, int& blocks);

}  // namespace vgpu::client
