// The gate, which a thread enters before it writes a frame into the ring. Closing it waits until the threads inside have left, so
// that no frame is half written and no object half recorded when a snapshot is taken.
//
// A thread is inside from before it reserves a frame until the frame is published; for a call that makes an object, until its
// reply is recorded. A thread that waits for the GPU is outside.
//
// Each thread has a flag on a cache line of its own (Mark). Marks are in the process's own memory, in a list that only grows; a
// new thread reuses the mark of one that has ended. `mutex`, a leaf, guards threads that join and part.
//
// Memory order: a thread stores `inside`, then loads `closed`; the closer stores `closed`, then loads each `inside`. Each side
// needs a fence between its store and its load (Dekker), so that one of the two sees the other; the closer issues both
// (membarrier). That holds for a new mark too: it is in the list (release) before its thread stores `inside`. Work inside happens
// before the closer's work (release, acquire).
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>

#include "intercept/session/asymmetric-fence.h"

namespace vgpu::client {

class Thread;

class Gate {
 public:
  // A thread's, from join() to part().
  class alignas(64) Mark {
   public:
    Mark(uint32_t number, Mark* older) : number(number), older(older) {}
    // Threads that have a mark at the same time have different numbers; the smallest free ones are used.
    const uint32_t number;
    // Whose it is now: for a thread that knows another one by its id, and that it cannot end meanwhile.
    std::atomic<pid_t> threadId{0};
    std::atomic<Thread*> thread{nullptr};

   private:
    friend class Gate;
    std::atomic<uint32_t> inside{0};
    Mark* const older;         // in the list of all
    Mark* nextFree = nullptr;  // in the list of free marks
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

  // Being outside for a while, in whatever state the thread was; as that afterwards.
  class Outside {
   public:
    Outside(Gate& gate, Mark& mark) : gate(gate), mark(mark), wasInside(mark.inside.load(std::memory_order_relaxed) != 0) {
      if (wasInside) leave(mark);
    }
    ~Outside() {
      if (wasInside) gate.enter(mark);
    }
    Outside(const Outside&) = delete;
    Outside& operator=(const Outside&) = delete;

   private:
    Gate& gate;
    Mark& mark;
    const bool wasInside;
  };

  Mark& join();
  void part(Mark& mark);

  // Returns true when nobody is inside. A thread inside may wait for the worker, so whether it leaves can depend on events that
  // only the closer sees: `givesUp` is polled between waits, and if it returns true the gate is opened again and close() returns
  // false. One closer at a time. If the fence fails it is open again too, and throws kj::Exception.
  bool close(const std::function<bool()>& givesUp = [] { return false; });
  void open();
  // Returns when each other thread has been seen outside, since when what the caller has stored before is visible to it.
  void awaitOthers(const Mark& own);
  // nullptr if that thread has no mark.
  Thread* findThread(pid_t id) const;
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
