// Sleeping on a word of shared memory, and how long to spin before that.
#pragma once

#include <atomic>
#include <cstdint>

namespace vgpu {

// Sleeps for at most `nanoseconds` while `word` equals `expected`. May wake early. Works across processes.
void futexWait(std::atomic<uint32_t>& word, uint32_t expected, uint64_t nanoseconds);
// Wakes all sleepers.
void futexWake(std::atomic<uint32_t>& word);

// How a thread that sleeps on a word of shared memory learns that the other side has changed it. Both sides change the word before they
// wake sleepers, so a polling thread sees every change that a wake-up announces.
enum class Waking : uint8_t {
  futex,
  // Reads the word repeatedly: the memory is a virtual machine's device, which both sides map in different kernels, and on which a futex
  // fails with EFAULT.
  polling,
};
// Sleeps by futex or by polling. A polling thread notices a change late by at most a sixteenth of the time slept so far, 4 ms at most.
void sleepOn(Waking waking, std::atomic<uint32_t>& word, uint32_t expected, uint64_t nanoseconds);
inline void wakeSleepers(Waking waking, std::atomic<uint32_t>& word) {
  if (waking == Waking::futex) futexWake(word);
}

// The state of one wait: the thread spins first, as CUDA does while it waits, then sleeps for increasing times. A sleeping thread wakes
// some 50 µs late, so the spin is long: most waits end within it. Once the wait has lasted longer than a launch takes, each spin yields the
// core. With two cores or fewer the other side needs this core, so the spin is short.
class Backoff {
 public:
  // `spinNanoseconds`: how long to spin on a machine with more than two cores.
  explicit Backoff(uint64_t spinNanoseconds = 20'000'000) : limit(spinNanoseconds) {}

  // Whether there are enough cores for a long spin.
  static bool isLong();
  // One pause. Returns false once the spinning is over.
  bool spin();
  // How long to sleep next: a fraction of the time already waited, between 20 µs and 1 ms, so that the end of the wait is noticed late by
  // that fraction at most. If many threads of the process sleep, together they wake at most 20 times a millisecond: hundreds of threads
  // that wake every millisecond would take all cores from the threads for whose work they wait.
  uint64_t sleepNanoseconds();

 private:
  uint64_t limit;
  uint32_t rounds = 0;
  uint64_t started = 0;  // on the monotonic clock; 0: the wait has not started
};

}  // namespace vgpu
