// pthread_cancel() ends a thread at a cancellation point (a sleep, a read, a write) by unwinding its stack. Our calls allow that:
// unwinding releases what they hold, including a reservation in the ring (call.h). Only while a reply into the thread's slot or
// bytes into its slab are pending, cancellation is deferred.
//
// Disabling it costs two locked instructions (28 ns), so calls that do not wait leave it enabled.
#pragma once

#include <pthread.h>

namespace vgpu::client {

// While it lives, the calling thread is not cancelled. A pending cancellation then happens at its next cancellation point, or in
// the destructor itself if its cancellation is asynchronous.
class CancellationOff {
 public:
  CancellationOff() { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before); }
  ~CancellationOff() noexcept(false) { pthread_setcancelstate(before, nullptr); }
  CancellationOff(const CancellationOff&) = delete;
  CancellationOff& operator=(const CancellationOff&) = delete;

 private:
  int before = PTHREAD_CANCEL_ENABLE;
};

}  // namespace vgpu::client
