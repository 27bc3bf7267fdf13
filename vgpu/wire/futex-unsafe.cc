#include "vgpu/wire/futex.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <thread>

namespace vgpu {

namespace {

uint64_t now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(t.tv_nsec);
}

bool hasFewCores() {
  static const bool few = std::thread::hardware_concurrency() <= 2;
  return few;
}

constexpr uint32_t fewRounds = 50;        // rounds of pauses, if there are at most two cores
constexpr uint32_t roundsPerLook = 64;    // rounds between two reads of the clock: one or two microseconds
constexpr uint64_t politeAfter = 60'000;  // nanoseconds: twice what a launch and its wait take natively (docs/facts.md)
// Nanoseconds: shortest and longest sleep; longest sleep of a polling thread; the interval between wake-ups of any two threads.
constexpr uint64_t shortestSleep = 20'000, longestSleep = 1'000'000, longestPoll = 4'000'000, wakeInterval = 50'000;

// How many threads of this process sleep on a word. Relaxed: it orders nothing, and a stale count only makes one sleep longer or shorter.
std::atomic<uint32_t> sleepers{0};
struct Sleeper {
  Sleeper() { sleepers.fetch_add(1, std::memory_order_relaxed); }
  ~Sleeper() { sleepers.fetch_sub(1, std::memory_order_relaxed); }
};

// A sixteenth of the time that a thread has waited, which bounds its lateness, but at least the shortest sleep and at most `longest`;
// longer if so many threads sleep that their wake-ups would take the processors.
uint64_t sleepAfter(uint64_t waited, uint64_t longest) {
  return std::clamp(waited / 16, shortestSleep, std::max(longest, sleepers.load(std::memory_order_relaxed) * wakeInterval));
}

}  // namespace

void futexWait(std::atomic<uint32_t>& word, uint32_t expected, uint64_t nanoseconds) {
  timespec limit{static_cast<time_t>(nanoseconds / 1'000'000'000), static_cast<long>(nanoseconds % 1'000'000'000)};
  Sleeper counted;
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAIT, expected, &limit, nullptr, 0);
}

void futexWake(std::atomic<uint32_t>& word) {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

void sleepOn(Waking waking, std::atomic<uint32_t>& word, uint32_t expected, uint64_t nanoseconds) {
  if (waking == Waking::futex) return futexWait(word, expected, nanoseconds);
  Sleeper counted;
  const uint64_t started = now();
  for (uint64_t slept = 0; slept < nanoseconds && word.load(std::memory_order_acquire) == expected; slept = now() - started) {
    const uint64_t next = std::min(sleepAfter(slept, longestPoll), nanoseconds - slept);
    timespec pause{static_cast<time_t>(next / 1'000'000'000), static_cast<long>(next % 1'000'000'000)};
    nanosleep(&pause, nullptr);
  }
}

bool Backoff::isLong() { return !hasFewCores(); }

bool Backoff::spin() {
  __builtin_ia32_pause();
  if (hasFewCores()) return ++rounds <= fewRounds;
  if (++rounds % roundsPerLook != 0) return true;
  uint64_t time = now();
  if (started == 0) started = time;
  if (time - started >= limit) {
    rounds = roundsPerLook - 1;  // from now on every call reads the clock
    return false;
  }
  if (time - started >= politeAfter) sched_yield();
  return true;
}

uint64_t Backoff::sleepNanoseconds() {
  uint64_t time = now();
  if (started == 0) started = time;
  return sleepAfter(time - started, longestSleep);
}

}  // namespace vgpu
