// The gate: every frame passes it on its way into the ring. Closing it waits until the threads inside have left, so that
// no frame is half written and no object half recorded when a snapshot is taken.
//
// A thread is inside from before it reserves a frame until the frame is published; for a call that makes an object, until
// its answer is recorded. A thread that waits for the GPU is outside.
//
// Memory order: a thread announces itself, then looks at `closed`; the closer closes, then looks at the threads. Each side
// has a fence between its store and its load (Dekker), so one of the two always sees the other; the closer pays for both.
// What was done inside comes before the closer's work (release, acquire). A mark per slot keeps the threads off each
// other's cache lines.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>

#include "intercept/session/asymmetric-fence.h"
#include "vgpu/wire/segment.h"

namespace vgpu {

class Gate {
 public:
  // Waits while the gate is closed. `slot` is the calling thread's own.
  void enter(uint64_t slot) {
    marks[slot].inside.store(1, std::memory_order_relaxed);
    AsymmetricFence::light();
    if (closed.load(std::memory_order_acquire) != 0) waitOutside(slot);
  }
  void leave(uint64_t slot) { marks[slot].inside.store(0, std::memory_order_release); }

  // Returns true when nobody is inside. A thread inside may wait for the worker, so its end can depend on what the closer
  // alone can learn: `givesUp` is asked between waits, and where it says yes the gate is open again and close() returns
  // false. One closer at a time. Where the fence fails it is open again too, and throws kj::Exception.
  bool close(const std::function<bool()>& givesUp = [] { return false; });
  void open();
  bool isClosed() const { return closed.load() != 0; }

 private:
  struct alignas(64) Mark {
    std::atomic<uint32_t> inside{0};
  };
  void waitOutside(uint64_t slot);

  std::array<Mark, slotCount> marks;
  std::atomic<uint32_t> closed{0};  // futex of the threads outside
};

}  // namespace vgpu
