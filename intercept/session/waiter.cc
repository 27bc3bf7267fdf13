#include "intercept/session/waiter.h"

#include <chrono>
#include <thread>

#include "vgpu/wire/futex.h"

namespace vgpu::client {

Waiter::Waiter(Thread& thread, SlotTable::Range range)
    : thread(thread), index(thread.session.slots.take(range, thread.number(), thread.session.lost)) {
  if (index) expectAnswer();
}

Waiter::Waiter(Thread& thread, uint16_t slot) : thread(thread), index(slot) { expectAnswer(); }

// Clears the slot, which may hold any sequence number of another ring. The GPU writes `done` but no result.
void Waiter::expectAnswer() {
  slot().done.store(0, std::memory_order_relaxed);
  slot().result = CUDA_SUCCESS;
  slot().replyWords = 0;
}

// Spins, then sleeps for increasing periods: the GPU writes `done` without waking a thread, the worker does wake us.
CUresult Waiter::await(unsigned device, uint64_t sequence, For whom) {
  Session& session = thread.session;
  Slot& mine = slot();
  Backoff backoff;
  while (mine.done.load(std::memory_order_acquire) < sequence) {
    if (session.lost.load(std::memory_order_relaxed)) return session.lossResult();
    if (whom == For::gpu)
      if (CUresult fault = session.faultOf(device, sequence)) {
        awaitExecution(device, sequence);
        return fault;
      }
    if (backoff.spin()) continue;
    uint32_t seen = mine.wakeups.load();
    mine.sleeping.store(1);
    if (mine.done.load() < sequence) sleepOn(session.segment.waking(), mine.wakeups, seen, backoff.sleepNanoseconds());
    mine.sleeping.store(0);
  }
  if (whom == For::gpu) expectWork(session, device);
  return static_cast<CUresult>(mine.result);
}

// A context that has ended writes no more, but the worker still writes a result into the slot when it reaches the frame.
void Waiter::awaitExecution(unsigned device, uint64_t sequence) const {
  Session& session = thread.session;
  Backoff backoff;
  auto isExecuted = [&] { return session.segment.ring(device).tail.load(std::memory_order_acquire) >= sequence; };
  while (!isExecuted() && !session.lost.load(std::memory_order_relaxed))
    if (!backoff.spin()) std::this_thread::sleep_for(std::chrono::nanoseconds(backoff.sleepNanoseconds()));
}

}  // namespace vgpu::client
