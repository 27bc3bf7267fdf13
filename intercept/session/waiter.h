// A slot, held by a call that waits.
//
// It is taken before the call passes the gate and takes its place in the ring: the worker waits for whoever has a place
// there, so he must not wait for a slot. It is given back when the answer has been read.
#pragma once

#include <cuda.h>

#include <optional>

#include "intercept/session/thread.h"

namespace vgpu::client {

class Waiter {
 public:
  // Waits for a slot where all of `range` are taken.
  Waiter(Thread& thread, SlotTable::Range range);
  // Of a slot that tryTake() gave.
  Waiter(Thread& thread, uint16_t slot);
  ~Waiter() {
    if (index) thread.session.slots.give(*index);
  }
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;

  // False where the session was lost before there was a slot.
  bool hasSlot() const { return index.has_value(); }
  uint16_t slotIndex() const { return *index; }

  // Waits until the frame of `sequence`, sent with this slot, is complete. CUDA's answer of it, or the fault of `device`, which
  // executes it, where the GPU is waited for.
  enum class For { worker, gpu };
  CUresult await(unsigned device, uint64_t sequence, For whom = For::gpu);

  // What has come with the result, 0 and nothing until then; only slots for calls and for bytes have room for it.
  uint32_t replyWords() const { return slot().replyWords; }
  const std::byte* answer() const { return thread.session.segment.reply(*index); }

 private:
  void expectAnswer();
  void awaitExecution(uint64_t sequence) const;
  Slot& slot() const { return thread.session.segment.slot(*index); }

  Thread& thread;
  std::optional<uint16_t> index;
};

}  // namespace vgpu::client
