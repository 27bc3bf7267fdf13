// pthread_cancel() ends a thread at a cancellation point (a sleep, a read, a write) by unwinding its stack. Calls of ours let
// that happen: what they hold is given back on the way, a place in the ring included (call.h). Only where somebody still
// owes the thread something, an answer into its slot or bytes into its slab, cancellation waits.
//
// Switching it costs two locked instructions (28 ns), so calls that wait for nothing do not.
#pragma once

#include <pthread.h>

namespace vgpu::client {

// While it lives, the calling thread is not cancelled. Afterwards it is at its next cancellation point; in the destructor
// itself where its cancellation is asynchronous.
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
