// Copies to a device from memory that is registered and that no device reaches (registered-memory.cc). Such memory is copied as pageable
// memory is, but of registered memory CUDA takes what is there when the stream comes to the copy: a function of the program's that a
// stream calls before (cuLaunchHostFunc) may have written it. So if any is still to be called, the bytes are taken in the stream's order,
// by a thread of ours, into pinned memory, which the GPU copies.
#pragma once

#include <optional>

#include "intercept/session/copy/copy-end.h"
#include "intercept/session/thread.h"

namespace vgpu::client {

// Posts such a copy, of registered memory. Nothing if no function is still to be called, or if there is no memory that the session shares
// with the GPU's host: then the bytes are to be taken at the call.
std::optional<CUresult> copyBehindFunctions(Thread& thread, const CopyEnd& destination, const CopyEnd& source, const BoxSize& size,
                                            uint64_t stream);

}  // namespace vgpu::client
