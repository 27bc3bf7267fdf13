// Which slots of the segment are in use. A slot belongs to a call while it waits, not to a thread: a program has as many
// threads as it likes, and only those that wait at one time need different slots.
//
// A slot is taken and given back by one exchange and one store of a flag in the process's own memory; the worker need not
// know. The flag of the slot that a thread's number leads to is as a rule in that thread's cache and free, so a wait pays
// some nanoseconds for it. Memory order: giving is a release, taking an acquire, so what the last holder read and wrote in
// the slot comes before what the next one does; and its frame's place in the ring, reserved before it gave the slot back,
// comes before the next one's, so numbers in the slot only grow. A slot is given back when its frame is complete, or
// never will be: the worker is lost, or the context has ended and the worker has executed the frame. So nothing is written
// into it behind its holder's back.
//
// Who waits for the GPU may wait until another thread makes a call, so such waits never take what calls need: slots with an
// answer are taken for as long as the worker works on one frame, and for copies of few bytes, which leave some of them to
// calls. There are more slots for waits without an answer than programs have threads; were they all taken, the next waits
// for one.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>

#include "vgpu/wire/segment.h"

namespace vgpu::client {

class SlotTable {
 public:
  struct Range {
    uint32_t first, count;
  };
  static constexpr Range forCalls{0, replyCount};
  static constexpr Range forBytes{replyCount / 4, replyCount - replyCount / 4};
  static constexpr Range forWaits{replyCount, slotCount - replyCount};

  // Any thread. `number` is the thread's, and says at which slot of the range it looks first.
  // Nothing where all of the range are taken.
  std::optional<uint16_t> tryTake(Range range, uint32_t number);
  // Waits where all of the range are taken; nothing once `abandoned`.
  std::optional<uint16_t> take(Range range, uint32_t number, const std::atomic<bool>& abandoned);
  void give(uint16_t slot) { flagOf(slot).store(false, std::memory_order_release); }

 private:
  // Flags of neighbouring slots lie on different cache lines.
  std::atomic<bool>& flagOf(uint32_t slot) {
    constexpr uint32_t lineBytes = 64, lines = slotCount / lineBytes;
    return taken[slot % lines * lineBytes + slot / lines];
  }
  alignas(64) std::array<std::atomic<bool>, slotCount> taken{};
};

}  // namespace vgpu::client
