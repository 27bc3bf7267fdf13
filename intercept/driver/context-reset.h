// Ending a context: its objects are destroyed, and a context that a fault has ended is made anew.
#pragma once

#include "intercept/session/thread.h"

namespace vgpu::client {

// Ends `context`, a primary one or one that the program made, with all objects made in it. The device has only one context in the worker:
// if a fault has ended that, the objects of the device's other contexts are gone too. CUDA's result, which may be an error of work posted
// before.
CUresult endContext(Thread& thread, uint64_t context);
// Releases one retain of a device's primary context; the last release ends it. CUDA_ERROR_INVALID_CONTEXT if there is none.
CUresult releaseContext(Thread& thread, unsigned device);

}  // namespace vgpu::client
