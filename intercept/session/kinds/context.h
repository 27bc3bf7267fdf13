#pragma once

#include <mutex>

#include "intercept/session/core-dumps.h"
#include "intercept/session/kinds/head.h"

namespace vgpu::client {

struct ContextState : ObjectHead {
  std::atomic<uint32_t> flags{0};  // as the program gave them
  std::atomic<uint32_t> uses{0};   // of the program's (cuCtxAttach); a primary context ends otherwise
  // Of one that is a green context's (cuCtxFromGreenCtx): that one's handle, and that of the stream which the null stream means
  // in it. Else 0.
  std::atomic<uint64_t> green{0}, defaultStream{0};

  // Handles of a stream of the session's own and of an event in it, made when they are first needed; they end with the context.
  struct Joint {
    uint64_t stream = 0, event = 0;
  };
  std::mutex joining;  // guards both; posts are made under it
  Joint past, future;  // behind what cuCtxRecordEvent has found; before what cuCtxWaitEvent has delayed
  std::atomic<uint64_t> delayedBy{0};  // the event of `future`, for which new streams wait; 0: for none
  CoreDumpSettings coreDumps;  // guarded by those functions

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
