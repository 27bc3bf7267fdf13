// An asymmetric fence. If a frequent thread stores word A and then loads word B, and a rare thread stores B and then loads A, at least one
// of them must see the other's store (Dekker): both need a fence between store and load. Here the frequent side's fence costs nothing,
// because the rare side makes the kernel run a fence on every thread of the process (membarrier(2)).
#pragma once

#include <atomic>

namespace vgpu::client {

class AsymmetricFence {
 public:
  // The frequent side's, between its store and its load.
  static void light() {
    if (kernelHelps) {
      std::atomic_signal_fence(std::memory_order_seq_cst);  // prevents reordering by the compiler
    } else {
      turn.fetch_add(0, std::memory_order_acq_rel);
    }
  }
  // The rare side's, between its store and its load: takes microseconds. Covers threads of this process only. Throws kj::Exception if
  // membarrier fails although its registration succeeded: a system-call filter was installed since.
  static void heavy();
  // For a process restored from a file, where the registration may be lost: kernels before 6.3 cannot be asked.
  static void registerAgain();

 private:
  // Without membarrier, both sides do a read-modify-write of this word instead. The side that comes second in its modification order sees
  // all that the other stored before.
  inline static std::atomic<int> turn{0};
  static const bool kernelHelps;  // Linux 4.14 and newer, unless a system-call filter forbids it
};

}  // namespace vgpu::client
