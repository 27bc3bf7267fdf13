// What kernels print comes out of the program: through its own `stdout`, in order with what it prints itself, on the thread
// that calls.
//
// The worker holds the text (stub/worker/device-output.h). A thread takes it at the points that CUDA's guide lists
// ("Formatted Output"): after a wait, a blocking copy, a module's loading and unloading, before a context ends; at a launch,
// where some is known to wait. An exit without any of these loses it, as natively. A program none of whose modules prints
// pays a look at `expected`. What the worker holds at a suspend travels in the snapshot; this here stays with the program.
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

  // Writes what kernels of `device` that have ended had printed.
  void deliver(Thread& thread, unsigned device);
  // At the start of a launch: the same, where the worker says that it holds something.
  void deliverWaiting(Thread& thread);

 private:
  std::atomic<bool> expected{false};
  std::mutex mutex;
  // By device: the work up to this sequence number was known to be done when everything was taken.
  std::array<std::atomic<uint64_t>, maxDevices> taken{};
};

}  // namespace vgpu::client
