// Memory that is being returned to its arena or to the worker: no thread can allocate it meanwhile, but one that finds no memory may wait
// for the other threads' returns.
//
// Any thread; state under Memory's mutex.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace vgpu::client {

class Returns {
 public:
  explicit Returns(std::mutex& mutex) : mutex(mutex) {}

  // A thread's return in progress. Constructed with the mutex held, destroyed without it.
  class Return {
   public:
    explicit Return(Returns& all) : all(all), number(++all.begun), older(all.latest) {
      all.latest = this;
      if (older != nullptr) older->newer = this;
    }
    ~Return() {
      std::lock_guard lock(all.mutex);
      if (older != nullptr) older->newer = newer;
      (newer != nullptr ? newer->older : all.latest) = older;
      ++all.ended;
      all.changed.notify_all();
    }
    Return(const Return&) = delete;
    Return& operator=(const Return&) = delete;

   private:
    friend class Returns;
    Returns& all;
    const uint64_t number;
    Return *older, *newer = nullptr;  // neighbours in the list of returns in progress
  };

  // With the mutex held. How many have begun; whether the first `count` have ended; whether all have.
  uint64_t soFar() const { return begun; }
  bool haveEnded(uint64_t count) const {
    const Return* oldest = latest;
    while (oldest != nullptr && oldest->older != nullptr) oldest = oldest->older;
    return oldest == nullptr || oldest->number > count;
  }
  bool areOver() const { return latest == nullptr; }

  // Waits for the returns that are in progress now. `lock` holds the mutex.
  void await(std::unique_lock<std::mutex>& lock) {
    changed.wait(lock, [this, count = begun] { return haveEnded(count); });
  }
  // How many returns have ended.
  uint64_t endedSoFar() const { return ended; }

 private:
  std::mutex& mutex;
  std::condition_variable changed;
  uint64_t begun = 0, ended = 0;
  Return* latest = nullptr;
};

}  // namespace vgpu::client
