// A thread of ours inside somebody's program: it takes no signals, so the program's handlers run on the program's threads.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <thread>
#include <utility>

namespace vgpu::client {

// While it lives no signal comes to the calling thread, nor to those that it starts, which keep it so.
class SignalsOff {
 public:
  SignalsOff() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
  }
  ~SignalsOff() { pthread_sigmask(SIG_SETMASK, &before, nullptr); }
  SignalsOff(const SignalsOff&) = delete;
  SignalsOff& operator=(const SignalsOff&) = delete;

 private:
  sigset_t before;
};

// `name`: at most 15 characters, for people who look at the process. Throws std::system_error where the system gives no
// thread, std::bad_alloc where it gives no memory for one.
template <typename Body>
std::thread startQuietThread(const char* name, Body&& body) {
  SignalsOff whileStarting;
  std::thread thread(std::forward<Body>(body));
  pthread_setname_np(thread.native_handle(), name);
  return thread;
}

}  // namespace vgpu::client
