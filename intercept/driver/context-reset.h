// Destroying a context: the objects that the program made in it are destroyed, and a context that a fault has ended is made anew.
#pragma once

#include "intercept/session/thread.h"

namespace vgpu::client {

// Ends `context`, a primary one or one that the program made, with all that was made in it. If a fault has ended the device's
// context in the worker, which is one for all of them, what was made in the others is gone too. CUDA's result, which may be that
// of work posted before.
CUresult endContext(Thread& thread, uint64_t context);
// Takes back one retain of a device's primary context, and ends it with the last. CUDA_ERROR_INVALID_CONTEXT if there is none.
CUresult releaseContext(Thread& thread, unsigned device);

}  // namespace vgpu::client
