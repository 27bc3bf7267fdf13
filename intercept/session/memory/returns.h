// Memory on its way back to its arena or to the worker, which is nobody's meanwhile: who finds none may wait for what others return.
//
// Any thread. All under the mutex of Memory.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace vgpu::client {

class Returns {
 public:
  explicit Returns(std::mutex& mutex) : mutex(mutex) {}

  // One that a thread makes. Begins under the mutex, and ends without it.
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
    Return *older, *newer = nullptr;  // of those that have not ended
  };

  // With the mutex held. How many have begun; whether the first `count` of them have ended, whatever others have since; whether all have.
  uint64_t soFar() const { return begun; }
  bool haveEnded(uint64_t count) const {
    const Return* oldest = latest;
    while (oldest != nullptr && oldest->older != nullptr) oldest = oldest->older;
    return oldest == nullptr || oldest->number > count;
  }
  bool areOver() const { return latest == nullptr; }

  // Waits for what other threads are returning now. `lock` is held.
  void await(std::unique_lock<std::mutex>& lock) {
    changed.wait(lock, [this, count = begun] { return haveEnded(count); });
  }
  // How many have ended.
  uint64_t endedSoFar() const { return ended; }

 private:
  std::mutex& mutex;
  std::condition_variable changed;
  uint64_t begun = 0, ended = 0;
  Return* latest = nullptr;
};

}  // namespace vgpu::client
