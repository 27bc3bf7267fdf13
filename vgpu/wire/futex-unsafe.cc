#include "vgpu/wire/futex.h"

#include <linux/futex.h>
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

// About 60 µs of pauses where cores abound: twice what a launch and its wait take natively (FACTS.md).
uint32_t spinRounds() {
  static const uint32_t rounds = std::thread::hardware_concurrency() > 2 ? 2000 : 50;
  return rounds;
}

}  // namespace

void futexWait(std::atomic<uint32_t>& word, uint32_t expected, uint64_t nanoseconds) {
  timespec limit{static_cast<time_t>(nanoseconds / 1'000'000'000), static_cast<long>(nanoseconds % 1'000'000'000)};
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAIT, expected, &limit, nullptr, 0);
}

void futexWake(std::atomic<uint32_t>& word, int count) {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAKE, count, nullptr, nullptr, 0);
}

bool Backoff::spin() {
  if (rounds >= spinRounds()) return false;
  ++rounds;
  __builtin_ia32_pause();
  return true;
}

uint64_t Backoff::sleepNanoseconds() {
  uint64_t time = now();
  if (started == 0) started = time;
  return std::clamp<uint64_t>((time - started) / 8, 20'000, 1'000'000);
}

}  // namespace vgpu
