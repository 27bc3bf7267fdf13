// A copy between any two ends of the session. Both ends are checked against what the session owns before the driver sees them: the worker's
// process holds no other data worth reading, but a copy must not become a way to probe it.
//
//   address       memory of the session: leased on any GPU, a module variable, or pinned
//   array         of any GPU, within its extent
//   slab          of the segment, from the slab's first byte
//   of the call   as source: the data in the frame; as destination: the reply in the slot of the waiting call
//
// Used by the thread of the GPU whose stream executes the copy; keeps no state.
#pragma once

#include "stub/worker/execution.h"

namespace vgpu::stub {

using CopyFrame = api::FrameReader<api::Cuda::Copy3dParams>;

// A copy node of a graph: the same fields; its ends are memory and arrays only.
using CopyNodeFrame = api::FrameReader<api::Cuda::GraphCopyParams>;

// Describes the copy for the driver. Same results as issueCopy().
CUresult describeCopy(Execution& on, const CopyNodeFrame& frame, CUDA_MEMCPY3D& copy);

// Checks that a fill lies within what the session owns; CUDA's result.
CUresult checkFill(Execution& on, uint64_t destination, uint64_t pitch, uint64_t elementBytes, uint64_t width, uint64_t height);

// Issues one copy to the driver. CUDA's result; CUDA_ERROR_INVALID_VALUE if an end is not the session's, the box is empty or not valid, or
// both ends are in the worker's own memory. Throws BadHandle for a handle that names no array.
CUresult issueCopy(Execution& on, const CopyFrame& frame, CUstream stream);

}  // namespace vgpu::stub
