// A fence whose price one side pays. Where one thread often stores and then looks, and another seldom does, each must
// see the other's store or be seen (Dekker): both need a fence between store and load. Here the frequent side's is
// free of cost, because the seldom one lets the kernel run a fence on every thread of the process (membarrier(2)).
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
  // Between the store and the load of the seldom side: microseconds. Threads of this process only. Throws kj::Exception
  // where the kernel, which has agreed to help, does not any more: a filter of system calls set since.
  static void heavy();

 private:
  // Where the kernel does not help, both sides change this word in between. One of two changes is the first, and who
  // comes second sees all that the other stored before.
  inline static std::atomic<int> turn{0};
  static const bool kernelHelps;  // Linux 4.14 and newer, unless a filter of system calls forbids it
};

}  // namespace vgpu::client
