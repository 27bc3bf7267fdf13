// The gate, which a thread enters before it writes a frame into the ring. Closing it waits until the threads inside have left, so that no
// frame is half written and no object half recorded when a snapshot is taken.
//
// A thread is inside from before it reserves a frame until the frame is published; for a call that makes an object, until its reply is
// recorded. A thread that waits for the GPU is outside.
//
// Each thread has a flag on a cache line of its own (Mark). Marks are in the process's own memory, in a list that only grows; a new thread
// reuses the mark of one that has ended. `mutex`, a leaf lock, guards joining and leaving threads.
//
// Memory order: a thread stores `inside`, then loads `closed`; the closer stores `closed`, then loads each `inside`. Each side needs a
// fence between its store and its load (Dekker), so that at least one sees the other; the closer issues both (membarrier). This holds for a
// new mark too: it is in the list (release) before its thread stores `inside`. Work inside happens before the closer's work (release,
// acquire).
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
  // A thread's mark, from join() to part().
  class alignas(64) Mark {
   public:
    Mark(uint32_t number, Mark* older) : number(number), older(older) {}
    // Marks in use at the same time have different numbers; the smallest free number is used.
    const uint32_t number;
    // The thread that has the mark now, for a lookup by thread id; the caller ensures that the thread does not end meanwhile.
    std::atomic<pid_t> threadId{0};
    std::atomic<Thread*> thread{nullptr};

   private:
    friend class Gate;
    std::atomic<uint32_t> inside{0};
    Mark* const older;         // in the list of all
    Mark* nextFree = nullptr;  // in the list of free marks
  };

  // Inside the gate during its lifetime. Entering waits while the gate is closed.
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

  // Outside the gate during its lifetime; restores the thread's previous state afterwards.
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

  // Returns true when nobody is inside. A thread inside may wait for the worker, so whether it leaves can depend on events that only the
  // closer sees: `givesUp` is polled between waits, and if it returns true the gate is opened again and close() returns false. One closer
  // at a time. If the fence fails, the gate is opened again and kj::Exception is thrown.
  bool close(const std::function<bool()>& givesUp = [] { return false; });
  void open();
  // Returns when every other thread has been seen outside; from then on it sees what the caller stored before.
  void awaitOthers(const Mark& own);
  // The thread with that id; nullptr if it has no mark.
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

  std::atomic<uint32_t> closed{0};  // futex on which the threads outside wait
  std::atomic<Mark*> newest{nullptr};
  std::mutex mutex;
  std::deque<Mark> marks;
  Mark* free = nullptr;
};

}  // namespace vgpu::client
