// Green contexts: parts of a device's multiprocessors with streams of their own (docs/green-contexts.md).
//
// A green context also has a CUcontext, which the program can make current: objects made in it belong to the device's primary context,
// streams to itself. The worker knows only the driver's green context, in which it makes the streams.
//
// Owns what is kept beside their objects (kinds/green-context.h): the contexts and streams that ended with their green contexts, for which
// CUDA returns errors of its own. Any thread; `mutex` is a leaf lock. Stays in the program's process over a suspend.
#pragma once

#include <cuda.h>

#include <mutex>
#include <unordered_set>

#include "intercept/session/kinds/green-context.h"

namespace vgpu::client {

class Thread;

class GreenContexts {
 public:
  // Makes a green context with its context and default stream. The caller has retained the device's primary context; the device is the
  // descriptor's.
  static CUresult create(Thread& thread, const ResourceDescriptorState& descriptor, uint64_t& green);
  // Ends a green context, its context and its streams. CUDA_ERROR_CONTEXT_IS_DESTROYED if another thread has. The caller releases the
  // primary context.
  CUresult end(Thread& thread, uint64_t green);
  // Makes a stream in it, as cuStreamCreateWithPriority does while it is current.
  static CUresult createStream(Thread& thread, uint64_t green, unsigned flags, int priority, uint64_t& stream);

  // Whether the handle is the context or a stream of an ended green context. As in the driver, the program can never free these handles.
  bool hasEnded(uint64_t handle) const {
    std::lock_guard lock(mutex);
    return ended.contains(handle);
  }

  // How many multiprocessors execute launches in a stream (a resolved handle).
  static uint32_t multiprocessorsOf(Thread& thread, uint64_t stream);

 private:
  void keepEnded(uint64_t handle) {
    std::lock_guard lock(mutex);
    ended.insert(handle);
  }

  mutable std::mutex mutex;
  std::unordered_set<uint64_t> ended;
};

}  // namespace vgpu::client
