// The entry of a call: every function of libcuda.so.1 begins with one of these functions.
//
// One of the three places where our own failures are caught (failure.h).
#pragma once

#include <cuda.h>

#include "intercept/session/call.h"
#include "intercept/session/failed-calls.h"
#include "intercept/session/failure.h"
#include "intercept/session/wait.h"

#define VGPU_EXPORT __attribute__((visibility("default")))

namespace vgpu::client {

// Whether cuInit() has been called in this process and the session is open.
Session* initializedSession();

// What the three below do with the calling thread.
template <typename Body>
CUresult inSession(Body&& body) {
  return answerOf([&]() -> CUresult {
    Session* session = initializedSession();
    if (session == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
    return body(Thread::current(*session));
  });
}
template <typename Body>
CUresult inContext(Body&& body) {
  return inSession([&](Thread& thread) -> CUresult {
    if (thread.contextStack.empty()) return CUDA_ERROR_INVALID_CONTEXT;
    return body(thread);
  });
}

// Runs `body` for the calling thread, whatever context it has. CUDA_ERROR_NOT_INITIALIZED before cuInit(). `entry`: the C function
// that calls this, for the log of failed calls; functions that C functions share hand it on.
template <typename Body>
CUresult enterAny(Body&& body, const char* entry = __builtin_FUNCTION()) {
  return noted(entry, inSession(body));
}

// The same for a call that needs a current context; CUDA_ERROR_INVALID_CONTEXT without one.
template <typename Body>
CUresult enterContext(Body&& body, const char* entry = __builtin_FUNCTION()) {
  return noted(entry, inContext(body));
}

// The same for a call that uses the context: CUDA_ERROR_CONTEXT_IS_DESTROYED if it has been destroyed, and the fault if one has
// ended it. CUDA_ERROR_NOT_PERMITTED in a function that a stream waits for: it would wait for itself.
template <typename Body>
CUresult enter(Body&& body, const char* entry = __builtin_FUNCTION()) {
  return noted(entry, inContext([&](Thread& thread) -> CUresult {
    if (thread.runsHostFunctions) [[unlikely]]
      return CUDA_ERROR_NOT_PERMITTED;
    if (!thread.takesDownContext) {
      if (CUresult destroyed = thread.checkContext()) return destroyed;
      if (CUresult fault = thread.session.fault(thread.device())) return fault;
    }
    return body(thread);
  }));
}

// For cuLogs*: what failed calls have left in the log, and who is told of them.
inline CUresult readFailures(CUlogIterator* from, const CallLog::Reader& to) {
  return inSession([&](Thread& thread) { return thread.session.failedCalls.read(thread, from, to); });
}
inline CUresult changeListener(CUlogsCallback function, void* data, CUlogsCallbackHandle* added, CUlogsCallbackHandle removed = nullptr) {
  return inSession([&](Thread& thread) { return thread.session.failedCalls.listen(function, data, added, removed); });
}

}  // namespace vgpu::client
