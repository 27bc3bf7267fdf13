#include "stub/worker/slow-calls.h"

#include <doctest/doctest.h>
#include <kj/debug.h>

#include <atomic>
#include <string>

#include "../no-more-threads.h"

using namespace vgpu::stub;

namespace {

constexpr std::chrono::minutes longTime{5};

struct Fixture {
  int begun = 0;
  std::string said;  // appended to by works and ends, which exclude each other
  std::atomic<bool> mayEnd{false};
  SlowCalls slow{[this] { ++begun; }};

  void add(char name) {
    slow.add([this, name] { return said += name, CUDA_SUCCESS; },
             [this, name](CUresult) { said += static_cast<char>(name - 'a' + 'A'); });
  }
  // Adds a call whose work waits until mayEnd.
  void addHeld() {
    slow.add(
        [this] {
          while (!mayEnd) std::this_thread::yield();
          return CUDA_ERROR_INVALID_IMAGE;
        },
        [this](CUresult result) { said += result == CUDA_ERROR_INVALID_IMAGE ? '!' : '?'; });
  }
};

}  // namespace

TEST_CASE_FIXTURE(Fixture, "slow calls run one at a time, each to its end") {
  for (char name : {'a', 'b', 'c'}) add(name);
  CHECK(slow.finish(longTime));
  CHECK(said == "aAbBcC");
  CHECK(begun == 1);
  CHECK(slow.isEmpty());
}

TEST_CASE_FIXTURE(Fixture, "a slow call runs on the caller's thread where the system has no other, and the next on one of its own") {
  {
    vgpu::test::NoMoreThreads limit;
    add('a');
    CHECK(said == "a");
    CHECK(slow.isDue());
    slow.poll();
  }
  addHeld();
  mayEnd = true;
  CHECK(slow.finish(longTime));
  CHECK(said == "aA!");
  CHECK(begun == 1);
}

TEST_CASE_FIXTURE(Fixture, "what comes behind the slow calls waits for them, and runs at once without any") {
  slow.afterAll([&] { said += '1'; });
  CHECK(said == "1");
  addHeld();
  add('a');
  slow.afterAll([&] { said += '2'; });
  slow.poll();
  CHECK(said == "1");
  mayEnd = true;
  CHECK(slow.finish(longTime));
  CHECK(said == "1!aA2");
}

TEST_CASE_FIXTURE(Fixture, "whoever waits for slow calls gives up after a time") {
  addHeld();
  CHECK_FALSE(slow.finish(std::chrono::milliseconds(1)));
  CHECK_FALSE(slow.isEmpty());
  mayEnd = true;
  CHECK(slow.finish(longTime));
}

TEST_CASE_FIXTURE(Fixture, "a slow call's end may add others") {
  slow.add([] { return CUDA_SUCCESS; }, [&](CUresult) { add('a'); });
  CHECK(slow.finish(longTime));
  CHECK(said == "aA");
}

TEST_CASE_FIXTURE(Fixture, "a failure of our own comes out on the thread that polls") {
  slow.add([]() -> CUresult { KJ_FAIL_REQUIRE("no such thing"); }, [&](CUresult) { said += '?'; });
  CHECK_THROWS_AS(slow.finish(longTime), kj::Exception);
  CHECK(said.empty());
}

TEST_CASE_FIXTURE(Fixture, "who waits is woken when a work is done, and sees then that its end is due") {
  std::atomic<bool> woken{false};
  slow.setWake([&] { woken = true; });
  CHECK(!slow.isDue());
  addHeld();
  CHECK(!slow.isDue());
  mayEnd = true;
  while (!woken) std::this_thread::yield();
  CHECK(slow.isDue());
  slow.poll();
  CHECK(!slow.isDue());
  CHECK(said == "!");
}

TEST_CASE("slow calls that have not begun end with their owner") {
  std::atomic<int> ran{0};
  {
    SlowCalls slow([] {});
    for (int i = 0; i < 3; ++i) slow.add([&] { return ++ran, CUDA_SUCCESS; }, [&](CUresult) { ++ran; });
  }
  CHECK(ran <= 1);
}
