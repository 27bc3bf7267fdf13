// The consumer of one GPU's ring: it executes the frames in their order and, while none come, looks after the GPU, so that a
// context that a fault has ended becomes a reply for every waiter.
//
// Belongs to the thread of that GPU while it consumes; wake() is for any thread. A suspend keeps nothing of it: the position is
// Gpu::executed.
#pragma once

#include <atomic>
#include <optional>

#include "stub/worker/execution.h"
#include "stub/worker/folding.h"
#include "stub/worker/reply.h"
#include "vgpu/wire/futex.h"
#include "vgpu/wire/ring.h"

namespace vgpu::stub {

class RingConsumer {
 public:
  // Begins where the GPU's executed frames end.
  explicit RingConsumer(Execution& on);
  ~RingConsumer();
  RingConsumer(const RingConsumer&) = delete;
  RingConsumer& operator=(const RingConsumer&) = delete;

  // Executes frames until `stop`, between two of them. In the GPU's context. Throws kj::Exception on what an honest program never
  // sends.
  void consume(const std::atomic<bool>& stop);

  void wake() { reader.wake(); }

 private:
  bool step(Backoff& backoff, const std::atomic<bool>& stop);
  bool mustWait() const;
  void awaitOthers(uint32_t bell, uint64_t nanoseconds);
  void rest(Backoff& backoff, const std::atomic<bool>& stop);
  void issue(const std::atomic<bool>& stop);
  void run(const Frame& frame, bool isAgain = false);
  void putOff(const Frame& frame, SlowCall call, bool isAgain);
  void settle(const Frame& frame, CUresult result, bool isAgain);
  void forgetNamed(const Frame& frame);
  bool runAgain(const Frame& frame);
  void watch();

  Execution& on;
  RingReader reader;
  Folding folding;
  std::optional<Frame> frame;  // the next one, while it waits for another ring
  Reply reply;
  bool isBusy = false;    // the GPU has work that we have not seen to end
  bool isBehind = false;  // frames were there each time since one was executed: the program is ahead of us
};

}  // namespace vgpu::stub
