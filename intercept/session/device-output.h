// The text that kernels print is written by the program: through its own `stdout`, in order with the program's own output, on the
// thread that makes the call.
//
// The worker holds the text (stub/worker/device-output.h). A thread takes it at the points that CUDA's guide lists ("Formatted
// Output"): after a wait, a blocking copy, a module's loading and unloading, before a context ends; at a launch, if the worker is
// known to hold some. An exit without any of these loses it, as natively. A program without a module that prints only loads
// `expected`. Text that the worker holds at a suspend is in the snapshot; this object stays with the program.
//
// Lock order: `mutex` before the gate, with no other lock held: it is held while the program's standard output may block.
#pragma once

#include <array>
#include <atomic>
#include <mutex>

#include "vgpu/wire/arena.h"

namespace vgpu::client {

class Thread;

class DeviceOutput {
 public:
  // A module has been loaded whose kernels may print.
  void expect() { expected.store(true, std::memory_order_relaxed); }
  bool isExpected() const { return expected.load(std::memory_order_relaxed); }

  // Writes the text of kernels of `device` that have ended.
  void deliver(Thread& thread, unsigned device);
  // At the start of a launch: the same, if the segment says that the worker holds text.
  void deliverWaiting(Thread& thread);

 private:
  std::atomic<bool> expected{false};
  std::mutex mutex;
  // By device: when all text was taken, the work up to this sequence number was known to be done.
  std::array<std::atomic<uint64_t>, maxDevices> taken{};
};

}  // namespace vgpu::client
