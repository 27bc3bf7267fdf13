// A number that only grows and that any thread may raise, such as the position of a stream's last frame. Usually one thread raises it: the
// first one has a word of its own, which it stores without a locked operation. Any thread, lock-free.
//
// Memory order: a reader (acquire) of a number raised with `release` sees what the raising thread stored before.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace vgpu::client {

// Raises `value` to at least `least`.
inline void raise(std::atomic<uint64_t>& value, uint64_t least, std::memory_order order = std::memory_order_relaxed) {
  uint64_t seen = value.load(std::memory_order_relaxed);
  while (seen < least && !value.compare_exchange_weak(seen, least, order, std::memory_order_relaxed)) {
  }
}

class LatestNumber {
 public:
  // Raises it to at least `number`. `thread` identifies the calling thread among those alive: the address of its Thread.
  void raise(const void* thread, uint64_t number, std::memory_order order = std::memory_order_relaxed) {
    if (owner.load(std::memory_order_relaxed) == thread) [[likely]] {
      if (owned.load(std::memory_order_relaxed) < number) owned.store(number, order);
    } else {
      raiseShared(thread, number, order);
    }
  }
  uint64_t get(std::memory_order order = std::memory_order_relaxed) const { return std::max(owned.load(order), shared.load(order)); }
  // For reuse by another object: no thread may raise it meanwhile.
  void reset() {
    owner.store(nullptr, std::memory_order_relaxed);
    owned.store(0, std::memory_order_relaxed);
    shared.store(0, std::memory_order_relaxed);
  }

 private:
  void raiseShared(const void* thread, uint64_t number, std::memory_order order) {
    const void* nobody = nullptr;
    if (owner.compare_exchange_strong(nobody, thread, std::memory_order_relaxed)) return owned.store(number, order);
    client::raise(shared, number, order);
  }

  // The first thread that raised it. A later thread with the same address is its successor: the first one's stores happen before, because
  // its Thread was freed before the successor's was made.
  std::atomic<const void*> owner{nullptr};
  std::atomic<uint64_t> owned{0}, shared{0};
};

}  // namespace vgpu::client
