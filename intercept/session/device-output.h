// The text that kernels print. The program's process writes it: through its own `stdout`, in order with the program's own output, on the
// thread that makes the call.
//
// The worker holds the text (stub/worker/device-output.h). A thread takes it at the points that CUDA's guide lists ("Formatted Output"):
// after a wait, a blocking copy, loading and unloading of a module, before a context ends; at a launch, if the worker is known to hold
// some. An exit without any of these loses it, as natively. A program whose modules do not print pays one load of `expected`. Text that the
// worker holds at a suspend is in the snapshot; this object stays with the program.
//
// Lock order: `mutex`, then the gate; taken with no other lock held, because it is held while the program's standard output may block.
#pragma once

#include <array>
#include <atomic>
#include <mutex>

#include "vgpu/wire/arena.h"

namespace vgpu::client {

class Thread;

class DeviceOutput {
 public:
  // A module whose kernels may print has been loaded.
  void expect() { expected.store(true, std::memory_order_relaxed); }
  bool isExpected() const { return expected.load(std::memory_order_relaxed); }

  // Writes the text of kernels of `device` that have ended.
  void deliver(Thread& thread, unsigned device);
  // At a launch: the same, if the segment says that the worker holds text.
  void deliverWaiting(Thread& thread);

 private:
  std::atomic<bool> expected{false};
  std::mutex mutex;
  // By device: the sequence number up to which work was known to be done when all text was last taken.
  std::array<std::atomic<uint64_t>, maxDevices> taken{};
};

}  // namespace vgpu::client
