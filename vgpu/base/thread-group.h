// Threads that work together: the first exception that any of them throws ends all of them, and join() throws it.
//
// Owns the threads. Used by the thread that made it, except fail() and hasFailed(), which any thread may call.
#pragma once

#include <kj/exception.h>

#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace vgpu {

class ThreadGroup {
 public:
  // `stop` makes every thread end soon. Any thread may call it, possibly more than once, after one of them has failed.
  explicit ThreadGroup(std::function<void()> stop) : stop(std::move(stop)) {}
  ~ThreadGroup() { end(); }
  ThreadGroup(const ThreadGroup&) = delete;
  ThreadGroup& operator=(const ThreadGroup&) = delete;

  // Throws std::system_error if the system cannot start a thread.
  void start(std::function<void()> work) {
    threads.emplace_back([this, work = std::move(work)] { guard(work); });
  }
  // Runs `work` on the calling thread, as if that were a thread of the group.
  void guard(const std::function<void()>& work) {
    KJ_IF_MAYBE (exception, kj::runCatchingExceptions([&] { work(); })) {
      {
        std::lock_guard lock(mutex);
        if (failure == nullptr) failure = kj::mv(*exception);
      }
      stop();
    }
  }
  // Waits until all threads have ended, and throws the first exception that one of them threw.
  void join() {
    for (auto& thread : threads) thread.join();
    threads.clear();
    KJ_IF_MAYBE (exception, failure) kj::throwFatalException(kj::mv(*exception));
  }

 private:
  void end() {
    if (threads.empty()) return;
    stop();
    for (auto& thread : threads) thread.join();
  }

  std::function<void()> stop;
  std::vector<std::thread> threads;
  std::mutex mutex;  // guards:
  kj::Maybe<kj::Exception> failure;
};

}  // namespace vgpu
