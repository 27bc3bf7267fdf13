// Copies to a device from registered memory that no device can access (registered-memory.cc). Such memory is copied like pageable memory,
// but CUDA reads registered memory when the stream reaches the copy: a host function that runs before it (cuLaunchHostFunc) may have
// written the memory. So if a host function is pending, a thread of ours copies the bytes in stream order into pinned memory, from which
// the GPU copies them.
#pragma once

#include <optional>

#include "intercept/session/copy/copy-end.h"
#include "intercept/session/thread.h"

namespace vgpu::client {

// Posts such a copy. Nothing if no host function is pending, or if there is no memory shared with the GPU's host: the bytes are then to be
// read at the call.
std::optional<CUresult> copyBehindFunctions(Thread& thread, const CopyEnd& destination, const CopyEnd& source, const BoxSize& size,
                                            uint64_t stream);

}  // namespace vgpu::client
