// An asymmetric fence. If one thread often stores a word and then loads another, and a second thread seldom does the same with
// the words exchanged, at least one must see the other's store (Dekker): both need a fence between store and load. Here the
// frequent side's fence costs nothing, because the seldom side makes the kernel run a fence on every thread of the process
// (membarrier(2)).
#pragma once

#include <atomic>

namespace vgpu::client {

class AsymmetricFence {
 public:
  // Between the store and the load of the frequent side.
  static void light() {
    if (kernelHelps) {
      std::atomic_signal_fence(std::memory_order_seq_cst);  // the compiler must not exchange them
    } else {
      turn.fetch_add(0, std::memory_order_acq_rel);
    }
  }
  // Between the store and the load of the seldom side: microseconds. Threads of this process only. Throws kj::Exception if
  // membarrier fails although its registration succeeded: a filter of system calls set since.
  static void heavy();
  // In a process that has been restored from a file: a kernel before 6.3 does not tell that it is registered, so it may not be.
  static void registerAgain();

 private:
  // If there is no membarrier, both sides do a read-modify-write of this word instead. One of the two is first, and the thread
  // that comes second sees all that the other stored before.
  inline static std::atomic<int> turn{0};
  static const bool kernelHelps;  // Linux 4.14 and newer, unless a filter of system calls forbids it
};

}  // namespace vgpu::client
