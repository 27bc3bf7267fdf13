#pragma once

#include <mutex>

#include "intercept/session/core-dumps.h"
#include "intercept/session/kinds/head.h"

namespace vgpu::client {

struct ContextState : ObjectHead {
  std::atomic<uint32_t> flags{0};  // as the program set them
  std::atomic<uint32_t> uses{0};   // the program's (cuCtxAttach); not used for primary contexts
  // For the context of a green context (cuCtxFromGreenCtx): the green context's handle, and that of the stream that the null stream means
  // in it. Else 0.
  std::atomic<uint64_t> green{0}, defaultStream{0};

  // Handles of an internal stream and of an event recorded in it, made when they are first needed; they end with the context.
  struct Joint {
    uint64_t stream = 0, event = 0;
  };
  std::mutex joining;  // guards both; held over posts
  Joint past, future;  // for cuCtxRecordEvent; for cuCtxWaitEvent
  std::atomic<uint64_t> delayedBy{0};  // the event of `future`, for which new streams wait; 0: none
  CoreDumpSettings coreDumps;  // guarded by the mutex of core-dumps.cc

  void reset() {
    flags.store(0, std::memory_order_relaxed);
    uses.store(0, std::memory_order_relaxed);
    green.store(0, std::memory_order_relaxed);
    defaultStream.store(0, std::memory_order_relaxed);
    past = future = {};
    delayedBy.store(0, std::memory_order_relaxed);
    inheritCoreDumps(coreDumps);
  }
};

}  // namespace vgpu::client
