// How long waits sleep.
#include <doctest/doctest.h>
#include <unistd.h>

#include <thread>
#include <vector>

#include "vgpu/wire/futex.h"

using namespace vgpu;

TEST_CASE("if many threads sleep, each of them polls less often") {
  constexpr uint64_t longestAlone = 1'000'000;
  std::atomic<uint32_t> word{0}, begun{0};
  std::vector<std::thread> sleepers;
  for (int i = 0; i < 100; ++i)
    sleepers.emplace_back([&] {
      ++begun;
      while (word.load() == 0) futexWait(word, 0, 60'000'000'000);
    });
  while (begun < sleepers.size()) usleep(1000);
  Backoff waiting;
  waiting.sleepNanoseconds();
  usleep(100'000);  // it has waited long enough to reach the longest sleep
  const uint64_t among = waiting.sleepNanoseconds();
  word = 1;
  futexWake(word);
  for (auto& each : sleepers) each.join();
  CHECK(among > longestAlone);
  CHECK(waiting.sleepNanoseconds() == longestAlone);
}
