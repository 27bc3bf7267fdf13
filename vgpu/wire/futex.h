// Sleeping on a word of shared memory, and how long to spin before.
#pragma once

#include <atomic>
#include <cstdint>

namespace vgpu {

// Sleeps while `word` is `expected`, `nanoseconds` at most. May wake early. Works across processes.
void futexWait(std::atomic<uint32_t>& word, uint32_t expected, uint64_t nanoseconds);
// Wakes `count` sleepers.
void futexWake(std::atomic<uint32_t>& word, int count);

// A spell of waiting: spins first, then sleeps for ever longer spells, so that a short wait costs no system call and a
// long one no processor. With two cores or fewer the other side needs this core, so the spin is short.
class Backoff {
 public:
  // True while there is spinning left; each call is one pause.
  bool spin();
  // How long the next sleep should be: a fraction of the time already waited, between 20 µs and 1 ms, so that the answer
  // is found late by that fraction at most.
  uint64_t sleepNanoseconds();

 private:
  uint32_t rounds = 0;
  uint64_t started = 0;  // nanoseconds on the monotonic clock; 0: not yet
};

}  // namespace vgpu
