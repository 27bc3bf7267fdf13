#include "intercept/session/latest-number.h"

#include <doctest/doctest.h>

#include <array>
#include <thread>
#include <vector>

namespace vgpu::client {
namespace {

// Per-thread data, as Thread is.
struct Own {
  int unused = 0;
};

}  // namespace

TEST_CASE("a number never decreases, whichever thread raises it") {
  LatestNumber number;
  Own first, second;
  CHECK(number.get() == 0);
  number.raise(&first, 7);
  number.raise(&second, 5);
  CHECK(number.get() == 7);
  number.raise(&second, 9);
  number.raise(&first, 8);
  CHECK(number.get() == 9);
  number.raise(&first, 3);
  CHECK(number.get() == 9);
  number.raise(&first, 10);
  CHECK(number.get() == 10);
}

TEST_CASE("the number of another object begins at 0, with another first thread") {
  LatestNumber number;
  Own first, second;
  number.raise(&first, 7);
  number.raise(&second, 9);
  number.reset();
  CHECK(number.get() == 0);
  number.raise(&second, 2);
  CHECK(number.get() == 2);
}

// As frames do: a counter assigns positions, so each thread's own positions increase, and a frame's contents are stored before its
// position.
TEST_CASE("readers see it grow to the maximum of all threads, with what was stored before") {
  constexpr uint64_t places = 40'000;
  LatestNumber number;
  std::array<std::atomic<uint64_t>, places + 1> said{};
  std::atomic<uint64_t> next{0};
  std::atomic<bool> grows{true}, isSaid{true};
  auto raiseSome = [&](Own& own) {
    for (uint64_t place; (place = next.fetch_add(1) + 1) <= places;) {
      said[place].store(place, std::memory_order_relaxed);
      number.raise(&own, place, std::memory_order_release);
    }
  };
  auto read = [&] {
    for (uint64_t last = 0; last < places;) {
      const uint64_t seen = number.get(std::memory_order_acquire);
      if (seen < last) grows = false;
      if (seen != 0 && said[seen].load(std::memory_order_relaxed) != seen) isSaid = false;
      last = seen;
      if (!grows) return;
    }
  };
  std::array<Own, 4> owns;
  std::vector<std::thread> threads;
  for (auto& own : owns) threads.emplace_back([&] { raiseSome(own); });
  threads.emplace_back(read);
  for (auto& thread : threads) thread.join();
  CHECK(grows);
  CHECK(isSaid);
  CHECK(number.get() == places);
}

TEST_CASE("a thread that reuses the address of one that has ended continues with its number") {
  LatestNumber number;
  Own own;
  for (uint64_t thread = 0; thread < 100; ++thread)
    std::thread([&] {
      for (uint64_t i = 1; i <= 10; ++i) number.raise(&own, thread * 10 + i);
    }).join();
  CHECK(number.get() == 1000);
}

}  // namespace vgpu::client
