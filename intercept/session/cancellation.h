// pthread_cancel() ends a thread at a cancellation point (a sleep, a read, a write) by unwinding its stack. Calls allow that: unwinding
// releases what they hold, including a reservation in the ring (call.h). Cancellation is deferred only while a reply into the thread's
// slot, or bytes into its slab, are pending.
//
// Deferring costs two locked instructions (28 ns), so calls that do not wait leave cancellation enabled.
#pragma once

#include <pthread.h>

namespace vgpu::client {

// Defers cancellation of the calling thread during its lifetime. A pending cancellation takes effect at the next cancellation point, or in
// the destructor if the thread's cancellation type is asynchronous.
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
