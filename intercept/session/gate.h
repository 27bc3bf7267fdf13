// The gate: every frame passes it on its way into the ring. Closing it waits until the threads inside have left, so that
// no frame is half written and no object half recorded when a snapshot is taken.
//
// A thread is inside from before it reserves a frame until the frame is published; for a call that makes an object, until
// its answer is recorded. A thread that waits for the GPU is outside.
//
// Each thread has a mark of its own, so that threads stay off each other's cache lines. Marks are the process's own memory,
// as many as there are threads, and are found by a list that only grows; the mark of a thread that has ended is the next
// one's. `mutex`, a leaf, is for the threads that come and go.
//
// Memory order: a thread announces itself, then looks at `closed`; the closer closes, then looks at the threads. Each side
// has a fence between its store and its load (Dekker), so one of the two always sees the other; the closer pays for both.
// That holds for a mark which is new too: it is in the list (release) before its thread announces itself. What was done
// inside comes before the closer's work (release, acquire).
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>

#include "intercept/session/asymmetric-fence.h"

namespace vgpu::client {

class Gate {
 public:
  // A thread's, from join() to part().
  class alignas(64) Mark {
   public:
    Mark(uint32_t number, Mark* older) : number(number), older(older) {}
    // The threads that have a mark at one time have different numbers, and no larger ones than they need.
    const uint32_t number;

   private:
    friend class Gate;
    std::atomic<uint32_t> inside{0};
    Mark* const older;         // in the list of all
    Mark* nextFree = nullptr;  // in the list of those that are nobody's
  };

  // Being inside. Entering waits while the gate is closed.
  class Pass {
   public:
    Pass(Gate& gate, Mark& mark) : mark(mark) { gate.enter(mark); }
    ~Pass() {
      if (inside) end();
    }
    Pass(const Pass&) = delete;
    Pass& operator=(const Pass&) = delete;
    void end() {
      leave(mark);
      inside = false;
    }

   private:
    Mark& mark;
    bool inside = true;
  };

  Mark& join();
  void part(Mark& mark);

  // Returns true when nobody is inside. A thread inside may wait for the worker, so its end can depend on what the closer
  // alone can learn: `givesUp` is asked between waits, and where it says yes the gate is open again and close() returns
  // false. One closer at a time. Where the fence fails it is open again too, and throws kj::Exception.
  bool close(const std::function<bool()>& givesUp = [] { return false; });
  void open();
  bool isClosed() const { return closed.load() != 0; }

 private:
  void enter(Mark& mark) {
    mark.inside.store(1, std::memory_order_relaxed);
    AsymmetricFence::light();
    if (closed.load(std::memory_order_acquire) != 0) waitOutside(mark);
  }
  static void leave(Mark& mark) { mark.inside.store(0, std::memory_order_release); }
  void waitOutside(Mark& mark);

  std::atomic<uint32_t> closed{0};  // futex of the threads outside
  std::atomic<Mark*> newest{nullptr};
  std::mutex mutex;
  std::deque<Mark> marks;
  Mark* free = nullptr;
};

}  // namespace vgpu::client
