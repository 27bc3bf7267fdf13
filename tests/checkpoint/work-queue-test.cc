// The queues of the chunk pipeline under many threads; thread sanitizer checks them too.
#include "vgpu/base/work-queue.h"

#include <doctest/doctest.h>
#include <kj/debug.h>

#include <atomic>
#include <thread>

#include "vgpu/base/thread-group.h"

using namespace vgpu;

TEST_CASE("every item that is put into a queue comes out once, also those that were in it when it was closed") {
  constexpr int perWriter = 2000, writers = 3, readers = 3;
  WorkQueue<int> queue;
  std::vector<std::atomic<int>> seen(writers * perWriter);
  std::vector<std::thread> reading, writing;
  for (int i = 0; i < readers; ++i)
    reading.emplace_back([&] {
      while (auto item = queue.pop()) ++seen[*item];
    });
  for (int i = 0; i < writers; ++i)
    writing.emplace_back([&, i] {
      for (int item = 0; item < perWriter; ++item) queue.push(i * perWriter + item);
    });
  for (auto& thread : writing) thread.join();
  queue.close();
  for (auto& thread : reading) thread.join();
  for (auto& count : seen) CHECK(count == 1);
  CHECK_FALSE(queue.pop().has_value());
}

TEST_CASE("a queue that is stopped returns nothing, and wakes its waiters") {
  WorkQueue<int> queue, empty;
  queue.push(1);
  std::thread waiting([&] { CHECK_FALSE(empty.pop().has_value()); });
  queue.stop();
  empty.stop();
  waiting.join();
  CHECK_FALSE(queue.tryPop().has_value());
  CHECK_FALSE(queue.pop().has_value());
}

// As files are read: each thread that has a slot takes the next item number.
TEST_CASE("items handed over in any order are taken in order of their numbers, however few slots there are") {
  constexpr size_t items = 5000, threads = 4, slots = 5;
  WorkQueue<size_t> unused;
  OrderedHandover<size_t> arrived(slots);
  std::vector<size_t> holds(slots);
  std::mutex mutex;
  size_t next = 0;
  ThreadGroup group([&] {
    unused.stop();
    arrived.stop();
  });
  for (size_t slot = 0; slot < slots; ++slot) unused.push(slot);
  for (size_t i = 0; i < threads; ++i)
    group.start([&] {
      while (auto slot = unused.pop()) {
        size_t number;
        {
          std::lock_guard lock(mutex);
          if (next == items) return;
          number = next++;
        }
        holds[*slot] = number;
        if (number % 7 == 0) std::this_thread::yield();
        arrived.give(number, *slot);
      }
    });
  group.guard([&] {
    for (size_t number = 0; number < items; ++number) {
      auto slot = arrived.tryTake();
      if (!slot) slot = arrived.take();
      KJ_REQUIRE(holds[*slot] == number);
      unused.push(*slot);
    }
    unused.close();
  });
  group.join();
}

TEST_CASE("an exception of the first thread ends the others and is thrown") {
  WorkQueue<int> never;
  ThreadGroup group([&] { never.stop(); });
  for (int i = 0; i < 3; ++i) group.start([&] { never.pop(); });
  group.start([] { KJ_FAIL_REQUIRE("this one gives up"); });
  CHECK_THROWS_WITH_AS(group.join(), doctest::Contains("this one gives up"), kj::Exception);
  { ThreadGroup abandoned([&] { never.stop(); }); abandoned.start([&] { never.pop(); }); }
}
