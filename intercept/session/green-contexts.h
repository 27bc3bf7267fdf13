// Green contexts: parts of a device's multiprocessors with streams of their own (docs/green-contexts.md).
//
// A green context has a CUcontext too, which the program can make current: objects made in it belong to the device's primary
// context, streams to itself. The worker knows neither: it makes the streams in the driver's green context.
//
// Owns what is kept of them beside their objects (kinds/green-context.h): the contexts and streams that ended with theirs, which
// CUDA answers for in its own way. Any thread; `mutex` is a leaf. All of it stays in the program's process over a suspend.
#pragma once

#include <cuda.h>

#include <mutex>
#include <unordered_set>

#include "intercept/session/kinds/green-context.h"

namespace vgpu::client {

class Thread;

class GreenContexts {
 public:
  // Makes one, with its context and its default stream. The caller has retained the device's primary context, and its device is
  // the descriptor's.
  static CUresult create(Thread& thread, const ResourceDescriptorState& descriptor, uint64_t& green);
  // Ends one, its context and its streams. CUDA_ERROR_CONTEXT_IS_DESTROYED if another thread has. The caller releases the primary
  // context.
  CUresult end(Thread& thread, uint64_t green);
  // A stream in it, as cuStreamCreateWithPriority makes one while it is current.
  static CUresult createStream(Thread& thread, uint64_t green, unsigned flags, int priority, uint64_t& stream);

  // Whether it is the context or a stream of a green context that has ended. As in the driver, the program can never free what
  // they leave.
  bool hasEnded(uint64_t handle) const {
    std::lock_guard lock(mutex);
    return ended.contains(handle);
  }

  // How many multiprocessors run what is launched in a stream (a resolved handle).
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
