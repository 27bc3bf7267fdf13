// A slot, held by a call while it waits.
//
// Taken before the call enters the gate and reserves its frame: the worker waits for every reserved frame, so a thread that has reserved
// one must not wait for a slot. Given back after the reply has been read.
#pragma once

#include <cuda.h>

#include <optional>

#include "intercept/session/thread.h"
#include "vgpu/wire/futex.h"

namespace vgpu::client {

// Called at the end of a wait for the GPU, after which most programs make further calls: after a long wait the worker sleeps, and waking it
// takes longer than the program takes until its next call. With few cores the worker sleeps after every wait, and that call wakes it.
inline void expectWork(const Session& session, unsigned device) {
  if (Backoff::isLong()) session.ring(device).wakeConsumer();
}

class Waiter {
 public:
  // Waits for a slot if all slots of `range` are taken.
  Waiter(Thread& thread, SlotTable::Range range);
  // With a slot from tryTake().
  Waiter(Thread& thread, uint16_t slot);
  ~Waiter() {
    if (index) thread.session.slots.give(*index);
  }
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;

  // False if the session was lost before there was a slot.
  bool hasSlot() const { return index.has_value(); }
  uint16_t slotIndex() const { return *index; }

  // Waits until the frame `sequence`, sent with this slot, is complete. CUDA's result for it or, in a wait for the GPU, the fault of
  // `device`, which executes it.
  enum class For { worker, gpu };
  CUresult await(unsigned device, uint64_t sequence, For whom = For::gpu);

  // The reply that came with the result, empty until then; only slots for calls and for bytes have room for one.
  uint32_t replyWords() const { return slot().replyWords; }
  const std::byte* answer() const { return thread.session.segment.reply(*index); }

 private:
  void expectAnswer();
  void awaitExecution(unsigned device, uint64_t sequence) const;
  Slot& slot() const { return thread.session.segment.slot(*index); }

  Thread& thread;
  std::optional<uint16_t> index;
};

}  // namespace vgpu::client
