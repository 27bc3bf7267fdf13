// Which slots of the segment are in use. A slot belongs to a call while it waits, not to a thread: a program may have any number of
// threads, and only those that wait at the same time need different slots.
//
// A slot is taken by one atomic exchange and given back by one store of a flag in the process's own memory; the worker is not involved. The
// flag that a thread tries first, by its number, is usually free and in its cache, so a wait pays some nanoseconds for it. Memory order:
// giving is a release, taking an acquire, so the last holder's accesses to the slot happen before the next one's. A call clears the slot
// before it sends its frame, because sequence numbers of different rings cannot be compared. A slot is given back when its frame is
// complete or never will be: the worker is lost, or the context has ended and the worker has executed the frame. So nothing is written into
// it for an earlier holder.
//
// A wait for the GPU may last until another thread makes a call, so such waits never take the slots that calls need. Slots with a reply are
// held while the worker executes one frame, and by copies of few bytes, which leave some of them to calls. There are more slots without a
// reply than programs have threads; if all are taken, the next wait waits for one.
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

  // Any thread. `number` is the thread's, and selects the slot of the range that is tried first. Nothing if all slots of the range are
  // taken.
  std::optional<uint16_t> tryTake(Range range, uint32_t number);
  // Waits if all slots of the range are taken; nothing once `abandoned`.
  std::optional<uint16_t> take(Range range, uint32_t number, const std::atomic<bool>& abandoned);
  void give(uint16_t slot) { flagOf(slot).store(false, std::memory_order_release); }

 private:
  // Flags of neighbouring slots are on different cache lines.
  std::atomic<bool>& flagOf(uint32_t slot) {
    constexpr uint32_t lineBytes = 64, lines = slotCount / lineBytes;
    return taken[slot % lines * lineBytes + slot / lines];
  }
  alignas(64) std::array<std::atomic<bool>, slotCount> taken{};
};

}  // namespace vgpu::client
