// Sleeping on a word of shared memory, and how long to spin before.
#pragma once

#include <atomic>
#include <cstdint>

namespace vgpu {

// Sleeps while `word` is `expected`, `nanoseconds` at most. May wake early. Works across processes.
void futexWait(std::atomic<uint32_t>& word, uint32_t expected, uint64_t nanoseconds);
// Wakes `count` sleepers.
void futexWake(std::atomic<uint32_t>& word, int count);

// A spell of waiting: spins first, as CUDA does while it waits, then sleeps for ever longer spells. A sleeper is woken
// some 50 µs late, so the spin is long: what is waited for usually takes less. It gives its core to whoever wants it
// once it has lasted longer than a launch. With two cores or fewer the other side needs this core, so the spin is
// short.
class Backoff {
 public:
  // `spinNanoseconds`: how long to spin where cores abound.
  explicit Backoff(uint64_t spinNanoseconds = 20'000'000) : limit(spinNanoseconds) {}

  // True while there is spinning left; each call is one pause.
  bool spin();
  // How long the next sleep should be: a fraction of the time already waited, between 20 µs and 1 ms, so that the
  // answer is found late by that fraction at most.
  uint64_t sleepNanoseconds();

 private:
  uint64_t limit;
  uint32_t rounds = 0;
  uint64_t started = 0;  // nanoseconds on the monotonic clock; 0: not yet
};

}  // namespace vgpu
