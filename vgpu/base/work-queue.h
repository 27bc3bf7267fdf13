// A queue between threads, without a bound: its items are slots of a ring, so there are few.
//
// Any number of threads. Its mutex is a leaf.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace vgpu {

template <typename Item>
class WorkQueue {
 public:
  void push(Item item) {
    {
      std::lock_guard lock(mutex);
      items.push_back(std::move(item));
    }
    changed.notify_one();
  }

  // Waits for an item. Returns nothing if the queue is empty after close(), or after stop().
  std::optional<Item> pop() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return stopped || closed || !items.empty(); });
    return take();
  }
  // Returns nothing if the queue is empty now.
  std::optional<Item> tryPop() {
    std::lock_guard lock(mutex);
    return take();
  }

  // No more items will be pushed.
  void close() {
    std::lock_guard lock(mutex);
    closed = true;
    changed.notify_all();
  }
  // Discards the queue's items.
  void stop() {
    std::lock_guard lock(mutex);
    stopped = true;
    changed.notify_all();
  }

 private:
  std::optional<Item> take() {
    if (stopped || items.empty()) return std::nullopt;
    std::optional<Item> item(std::move(items.front()));
    items.pop_front();
    return item;
  }

  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Item> items;
  bool closed = false, stopped = false;
};

// Items numbered 0, 1, …, handed over in any order and taken in the order of their numbers. At most `most` numbers lie between the first
// item not yet taken and the last one handed over. Any number of threads hand over, one takes.
template <typename Item>
class OrderedHandover {
 public:
  explicit OrderedHandover(size_t most) : places(most) {}

  void give(size_t number, Item item) {
    std::lock_guard lock(mutex);
    places[number % places.size()] = std::move(item);
    changed.notify_one();
  }

  // Waits for the next item. Returns nothing after stop().
  std::optional<Item> take() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return stopped || here(); });
    return takeHere();
  }
  // Returns nothing if the next item has not been handed over yet.
  std::optional<Item> tryTake() {
    std::lock_guard lock(mutex);
    return takeHere();
  }

  void stop() {
    std::lock_guard lock(mutex);
    stopped = true;
    changed.notify_all();
  }

 private:
  bool here() { return places[next % places.size()].has_value(); }
  std::optional<Item> takeHere() {
    if (stopped || !here()) return std::nullopt;
    return std::exchange(places[next++ % places.size()], std::nullopt);
  }

  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::optional<Item>> places;
  size_t next = 0;
  bool stopped = false;
};

}  // namespace vgpu
