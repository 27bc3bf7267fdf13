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

TEST_CASE_FIXTURE(Fixture, "a slow call runs on the caller's thread if no thread can be started, and the next one on its own thread") {
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

TEST_CASE_FIXTURE(Fixture, "afterAll() waits for all slow calls, and runs its function at once if there are none") {
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

TEST_CASE_FIXTURE(Fixture, "a wait for slow calls has a time limit") {
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

TEST_CASE_FIXTURE(Fixture, "an exception in a slow call is thrown on the thread that polls") {
  slow.add([]() -> CUresult { KJ_FAIL_REQUIRE("no such thing"); }, [&](CUresult) { said += '?'; });
  CHECK_THROWS_AS(slow.finish(longTime), kj::Exception);
  CHECK(said.empty());
}

TEST_CASE_FIXTURE(Fixture, "the waiting thread is woken when a call's work is done, and sees that its end is due") {
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
