// A thread of ours inside somebody's program: it takes no signals, so the program's handlers run on the program's threads.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <thread>
#include <utility>

namespace vgpu::client {

// While it lives no signal comes to the calling thread, nor to those that it starts, which keep it so.
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

// `name`: at most 15 characters, for people who look at the process. Throws std::system_error where the system gives no
// thread, std::bad_alloc where it gives no memory for one.
template <typename Body>
std::thread startBackgroundThread(const char* name, Body&& body) {
  SignalsBlocked whileStarting;
  std::thread thread(std::forward<Body>(body));
  pthread_setname_np(thread.native_handle(), name);
  return thread;
}

}  // namespace vgpu::client
