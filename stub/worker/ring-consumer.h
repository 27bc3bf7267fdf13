// The consumer of one GPU's ring: it executes the frames in order. While none come it checks the GPU, so that every waiter gets an error if
// a fault has ended the context.
//
// Belongs to the thread of that GPU while it consumes; any thread may call wake(). A suspend keeps nothing of it: the position is
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
  // Begins at the position up to which the GPU's frames are executed.
  explicit RingConsumer(Execution& on);
  ~RingConsumer();
  RingConsumer(const RingConsumer&) = delete;
  RingConsumer& operator=(const RingConsumer&) = delete;

  // Executes frames until `stop`, which is checked between frames. In the GPU's context. Throws kj::Exception on what no honest program
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
  std::optional<Frame> frame;  // the next frame, while it waits for another ring or for slow calls
  Reply reply;
  bool isBusy = false;    // the GPU has work that was not yet seen to finish
  bool isBehind = false;  // the ring was not empty since a frame was executed: the program is ahead of this thread
};

}  // namespace vgpu::stub
