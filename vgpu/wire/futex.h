// Sleeping on a word of shared memory, and how long to spin before that.
#pragma once

#include <atomic>
#include <cstdint>

namespace vgpu {

// Sleeps while `word` is `expected`, `nanoseconds` at most. May wake early. Works across processes.
void futexWait(std::atomic<uint32_t>& word, uint32_t expected, uint64_t nanoseconds);
// Wakes all sleepers.
void futexWake(std::atomic<uint32_t>& word);

// How a thread that sleeps on a word of shared memory learns that the other side has changed it. Both sides change the word
// first, so whoever polls sees what another one is woken for.
enum class Waking : uint8_t {
  futex,
  // It looks again and again: the memory is a virtual machine's device, on which a futex fails (EFAULT), and which the other side
  // has in another kernel.
  polling,
};
// The same in either way. A thread that polls is late by a sixteenth of the time that it has slept, 4 ms at most.
void sleepOn(Waking waking, std::atomic<uint32_t>& word, uint32_t expected, uint64_t nanoseconds);
inline void wakeSleepers(Waking waking, std::atomic<uint32_t>& word) {
  if (waking == Waking::futex) futexWake(word);
}

// The state of one wait: it spins first, as CUDA does while it waits, then sleeps for increasing times. A sleeping thread wakes
// some 50 µs late, so the spin is long: most waits take less. Once the wait has lasted longer than a launch, each spin yields the
// core. With two cores or fewer the other side needs this core, so the spin is short.
class Backoff {
 public:
  // `spinNanoseconds`: how long to spin if there are more than two cores.
  explicit Backoff(uint64_t spinNanoseconds = 20'000'000) : limit(spinNanoseconds) {}

  // Whether there are cores to spin on.
  static bool isLong();
  // True while there is spinning left; each call is one pause.
  bool spin();
  // How long the next sleep should be: a fraction of the time already waited, between 20 µs and 1 ms, so that the end of the wait
  // is noticed late by that fraction at most. Where many threads of the process sleep, all of them together wake 20 times a
  // millisecond: hundreds that look at their words every millisecond take all cores from those whose work they wait for.
  uint64_t sleepNanoseconds();

 private:
  uint64_t limit;
  uint32_t rounds = 0;
  uint64_t started = 0;  // nanoseconds on the monotonic clock; 0: not yet
};

}  // namespace vgpu
