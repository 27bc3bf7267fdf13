// The handover of a suspended session to a worker that has restored it. It is one word of the segment (docs/ring.md) and not a message,
// because the program, the daemon or the worker can end between any two messages, and the remaining ones must know for certain whether the
// worker has begun to consume frames.
//
//   0                       no worker has been accepted
//   2 · n                   the program has accepted the worker of its nth handover; either side can still withdraw
//   2 · n + 1               that worker has claimed the session and consumes frames: irrevocable
//
// The program accepts and withdraws, the worker claims; claim and withdrawal are compare-and-swaps from 2 · n, so exactly one of them
// succeeds. A number is used once, so a worker of an earlier, withdrawn handover cannot claim. The program can write any value here, but
// harms only its own session: a claim decides when the worker begins, not what it may do.
#pragma once

#include <atomic>
#include <cstdint>

namespace vgpu {

// Program's side: accepts the worker of a new handover, and returns the handover's number.
inline uint64_t acceptHandover(std::atomic<uint64_t>& word, uint64_t previous) {
  uint64_t number = previous + 2;
  word.store(number);
  return number;
}

// Program's side. Returns false if the worker has claimed the session.
inline bool withdrawHandover(std::atomic<uint64_t>& word, uint64_t number) {
  return word.compare_exchange_strong(number, 0);
}

// Worker's side. Returns false if the program has not accepted this handover, or has withdrawn.
inline bool claimHandover(std::atomic<uint64_t>& word, uint64_t number) {
  return number != 0 && number % 2 == 0 && word.compare_exchange_strong(number, number + 1);
}

}  // namespace vgpu
