// How many blocks of a kernel fit a multiprocessor: always the driver's own reply, requested once until the kernel changes.
#pragma once

#include "intercept/session/thread.h"

namespace vgpu::client {

struct ResidentBlock {
  int size;  // threads
  uint64_t sharedBytes;  // dynamic
  unsigned flags;  // CUoccupancy_flags
};

// CUDA's result; `blocks` is set if that is success. A call if nothing is known of such a block: then one frame asks for this
// block and for all sizes that a program could try next, in warps.
CUresult activeBlocks(Thread& thread, CUfunction function, const ResidentBlock& block, int& blocks);

}  // namespace vgpu::client
