#include "intercept/session/gate.h"

#include <doctest/doctest.h>
#include <kj/exception.h>
#include <sys/syscall.h>

#include <cerrno>
#include <memory>
#include <optional>
#include <set>
#include <thread>
#include <vector>

#include "../refused-call.h"

using namespace vgpu;
using namespace vgpu::client;

TEST_CASE("no thread is inside a closed gate until it is opened, whatever the threads do") {
  auto gate = std::make_unique<Gate>();
  std::atomic<bool> stop{false};
  std::atomic<int> inside{0};
  std::atomic<uint64_t> passes{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      while (!stop.load()) {
        Gate::Mark& mark = gate->join();  // a thread that arrives while the gate closes is kept out too
        for (int pass = 0; pass < 100 && !stop.load(); ++pass) {
          Gate::Pass through(*gate, mark);
          inside.fetch_add(1);
          passes.fetch_add(1);
          inside.fetch_sub(1);
        }
        gate->part(mark);
      }
    });
  for (int round = 0; round < 200; ++round) {
    gate->close();
    uint64_t before = passes.load();
    CHECK(inside.load() == 0);
    std::this_thread::yield();
    CHECK(inside.load() == 0);
    CHECK(passes.load() == before);
    gate->open();
    while (passes.load() == before) std::this_thread::yield();
  }
  stop = true;
  for (auto& thread : threads) thread.join();
}

TEST_CASE("closing waits for the thread that is inside") {
  auto gate = std::make_unique<Gate>();
  gate->join();
  Gate::Mark& mark = gate->join();
  std::optional<Gate::Pass> pass(std::in_place, *gate, mark);
  std::atomic<bool> closed{false};
  std::thread closer([&] {
    gate->close();
    closed = true;
  });
  while (!gate->isClosed()) std::this_thread::yield();
  CHECK(!closed);
  pass.reset();
  closer.join();
  CHECK(closed);
}

TEST_CASE("closing that is abandoned leaves the gate open, and the thread inside undisturbed") {
  Gate gate;
  Gate::Mark &slow = gate.join(), &other = gate.join();
  int asked = 0;
  {
    Gate::Pass inside(gate, slow);
    CHECK_FALSE(gate.close([&] { return ++asked == 3; }));
    CHECK(asked == 3);
    CHECK_FALSE(gate.isClosed());
    Gate::Pass another(gate, other);  // does not block
  }
  CHECK(gate.close([] { return true; }));  // no thread is inside
}

TEST_CASE("a thousand threads each have a mark, and so do later threads") {
  Gate gate;
  std::vector<Gate::Mark*> marks;
  std::set<uint32_t> numbers;
  for (int i = 0; i < 1000; ++i) numbers.insert(marks.emplace_back(&gate.join())->number);
  CHECK(numbers.size() == 1000);
  CHECK(*numbers.rbegin() == 999);
  for (auto* mark : marks) gate.part(*mark);
  for (int i = 0; i < 1000; ++i) {
    Gate::Mark& mark = gate.join();
    CHECK(mark.number < 1000);
    gate.part(mark);
  }
}

TEST_CASE("a gate whose closing fails is open, and closes when it can") {
  auto gate = std::make_unique<Gate>();
  test::withRefusedCall(SYS_membarrier, EPERM, [&] {
    auto failure = kj::runCatchingExceptions([&] { gate->close(); });
    // If the kernel has no membarrier(2), nothing fails.
    CHECK(gate->isClosed() == (failure == nullptr));
  });
  gate->open();
  gate->close();
  CHECK(gate->isClosed());
}
