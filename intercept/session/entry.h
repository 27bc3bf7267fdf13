// The entry of a call: every function of libcuda.so.1 starts with one of these functions.
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

// Runs `body` with the calling thread's state, without noting a failure; the functions below use it.
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

// Runs `body` for the calling thread, with or without a current context. CUDA_ERROR_NOT_INITIALIZED before cuInit(). `entry`: the calling C
// function, for the log of failed calls; functions shared by C functions pass theirs on.
template <typename Body>
CUresult enterAny(Body&& body, const char* entry = __builtin_FUNCTION()) {
  return noted(entry, inSession(body));
}

// As enterAny(), for a call that needs a current context; CUDA_ERROR_INVALID_CONTEXT if there is none.
template <typename Body>
CUresult enterContext(Body&& body, const char* entry = __builtin_FUNCTION()) {
  return noted(entry, inContext(body));
}

// As enterContext(), for a call that uses the context: CUDA_ERROR_CONTEXT_IS_DESTROYED if it has been destroyed, the fault if one has ended
// it, and CUDA_ERROR_NOT_PERMITTED inside a host function, which would wait for itself.
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

// For cuLogs*: reads the log of failed calls, and adds or removes listeners.
inline CUresult readFailures(CUlogIterator* from, const CallLog::Reader& to) {
  return inSession([&](Thread& thread) { return thread.session.failedCalls.read(thread, from, to); });
}
inline CUresult changeListener(CUlogsCallback function, void* data, CUlogsCallbackHandle* added, CUlogsCallbackHandle removed = nullptr) {
  return inSession([&](Thread& thread) { return thread.session.failedCalls.listen(function, data, added, removed); });
}

}  // namespace vgpu::client
