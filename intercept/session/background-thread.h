// Threads of ours inside the program's process. All signals are blocked in them, so that the program's handlers run on the program's
// threads.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <thread>
#include <utility>

namespace vgpu::client {

// During its lifetime all signals are blocked in the calling thread. Threads that it starts inherit the mask and keep it.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before;
};

// `name`: at most 15 characters, shown by tools such as ps. Throws std::system_error if no thread can be created, std::bad_alloc if memory
// is exhausted.
template <typename Body>
std::thread startBackgroundThread(const char* name, Body&& body) {
  SignalsBlocked whileStarting;
  std::thread thread(std::forward<Body>(body));
  pthread_setname_np(thread.native_handle(), name);
  return thread;
}

}  // namespace vgpu::client
