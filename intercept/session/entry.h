// The entry of a call: every function of libcuda.so.1 begins with one of these functions.
//
// One of the three places where our own failures are caught (failure.h).
#pragma once

#include <cuda.h>

#include "intercept/session/call.h"
#include "intercept/session/failure.h"
#include "intercept/session/wait.h"

#define VGPU_EXPORT __attribute__((visibility("default")))

namespace vgpu::client {

// Whether cuInit() has been called in this process and the session is open.
Session* initializedSession();

// Runs `body` for the calling thread, whatever context it has. CUDA_ERROR_NOT_INITIALIZED before cuInit().
template <typename Body>
CUresult enterAny(Body&& body) {
  return answerOf([&]() -> CUresult {
    Session* session = initializedSession();
    if (session == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
    return body(Thread::current(*session));
  });
}

// The same for a call that needs a current context; CUDA_ERROR_INVALID_CONTEXT without one.
template <typename Body>
CUresult enterContext(Body&& body) {
  return enterAny([&](Thread& thread) -> CUresult {
    if (thread.contextStack.empty()) return CUDA_ERROR_INVALID_CONTEXT;
    return body(thread);
  });
}

// The same for a call that uses the context: CUDA_ERROR_CONTEXT_IS_DESTROYED if it has been destroyed, and the fault if one has
// ended it. CUDA_ERROR_NOT_PERMITTED in a function that a stream waits for: it would wait for itself.
template <typename Body>
CUresult enter(Body&& body) {
  return enterContext([&](Thread& thread) -> CUresult {
    if (thread.runsHostFunctions) [[unlikely]]
      return CUDA_ERROR_NOT_PERMITTED;
    if (!thread.takesDownContext) {
      if (CUresult destroyed = thread.checkContext()) return destroyed;
      if (CUresult fault = thread.session.fault(thread.device())) return fault;
    }
    return body(thread);
  });
}

}  // namespace vgpu::client
