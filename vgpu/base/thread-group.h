// Threads that do one piece of work together: what the first of them throws ends all, and comes out of join().
//
// Owns the threads. Of the thread that made it, but for fail() and hasFailed().
#pragma once

#include <kj/exception.h>

#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace vgpu {

class ThreadGroup {
 public:
  // `stop` makes every thread end soon. It is called when one has failed, by any thread, maybe more than once.
  explicit ThreadGroup(std::function<void()> stop) : stop(std::move(stop)) {}
  ~ThreadGroup() { end(); }
  ThreadGroup(const ThreadGroup&) = delete;
  ThreadGroup& operator=(const ThreadGroup&) = delete;

  // Throws std::system_error if the system has no thread for it.
  void start(std::function<void()> work) {
    threads.emplace_back([this, work = std::move(work)] { guard(work); });
  }
  // Runs `work` here, as if it were a thread of the group.
  void guard(const std::function<void()>& work) {
    KJ_IF_MAYBE (exception, kj::runCatchingExceptions([&] { work(); })) {
      {
        std::lock_guard lock(mutex);
        if (failure == nullptr) failure = kj::mv(*exception);
      }
      stop();
    }
  }
  // Waits until all have ended, and throws what the first of them has thrown.
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
