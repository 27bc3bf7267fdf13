// A copy of the session's, whatever its ends are. Both are checked against what the session owns before the driver sees them: the
// worker's process holds nothing else worth reading, but a copy must not become a probe of it.
//
//   address       the session's memory: leased of any GPU, a variable, or pinned
//   array         of any GPU, within its extent
//   slab          of the segment, from its beginning
//   of the call   a source is the frame's data, a destination the place for a reply in the slot of a call that waits
//
// For the thread of the GPU in whose stream it is; keeps nothing.
#pragma once

#include "stub/worker/execution.h"

namespace vgpu::stub {

using CopyFrame = api::FrameReader<api::Cuda::Copy3dParams>;

// A node of a graph: the same fields, of ends in memory and arrays.
using CopyNodeFrame = api::FrameReader<api::Cuda::GraphCopyParams>;

// The copy as the driver describes one. CUDA's answer as issueCopy() gives it.
CUresult describeCopy(Execution& on, const CopyNodeFrame& frame, CUDA_MEMCPY3D& copy);

// Whether a fill is within what the session owns: CUDA's answer.
CUresult checkFill(Execution& on, uint64_t destination, uint64_t pitch, uint64_t elementBytes, uint64_t width, uint64_t height);

// Issues one copy of the driver's. CUDA's answer; CUDA_ERROR_INVALID_VALUE for what is not the session's, a box that is empty or
// none, and two ends in the worker's own memory. Throws BadHandle for an array that is none.
CUresult issueCopy(Execution& on, const CopyFrame& frame, CUstream stream);

}  // namespace vgpu::stub
