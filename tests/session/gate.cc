#include "intercept/session/gate.h"

#include <doctest/doctest.h>
#include <kj/exception.h>
#include <sys/syscall.h>

#include <cerrno>
#include <memory>
#include <thread>
#include <vector>

#include "../refused-call.h"

using namespace vgpu;

TEST_CASE("a closed gate is empty until it is opened, whatever the threads do") {
  auto gate = std::make_unique<Gate>();
  std::atomic<bool> stop{false};
  std::atomic<int> inside{0};
  std::atomic<uint64_t> passes{0};
  std::vector<std::thread> threads;
  for (uint64_t slot = 0; slot < 4; ++slot)
    threads.emplace_back([&, slot] {
      while (!stop.load()) {
        gate->enter(slot);
        inside.fetch_add(1);
        passes.fetch_add(1);
        inside.fetch_sub(1);
        gate->leave(slot);
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
  gate->enter(3);
  std::atomic<bool> closed{false};
  std::thread closer([&] {
    gate->close();
    closed = true;
  });
  while (!gate->isClosed()) std::this_thread::yield();
  CHECK(!closed);
  gate->leave(3);
  closer.join();
  CHECK(closed);
}

TEST_CASE("closing that is given up leaves the gate open, and the thread inside undisturbed") {
  auto gate = std::make_unique<Gate>();
  gate->enter(3);
  int asked = 0;
  CHECK_FALSE(gate->close([&] { return ++asked == 3; }));
  CHECK(asked == 3);
  CHECK_FALSE(gate->isClosed());
  gate->enter(4);  // does not wait
  gate->leave(4);
  gate->leave(3);
  CHECK(gate->close([] { return true; }));  // nobody to wait for
}

TEST_CASE("a gate whose closing fails is open, and closes when it can") {
  auto gate = std::make_unique<Gate>();
  test::withRefusedCall(SYS_membarrier, EPERM, [&] {
    auto failure = kj::runCatchingExceptions([&] { gate->close(); });
    // Where the kernel has no membarrier(2) anyway, nothing fails.
    CHECK(gate->isClosed() == (failure == nullptr));
  });
  gate->open();
  gate->close();
  CHECK(gate->isClosed());
}
