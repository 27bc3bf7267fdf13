// The completion word of one stream: the GPU writes into it the sequence numbers of the stream's records and fences, in their order. So the
// GPU has passed a record if the word holds its sequence number or a larger one, whatever happens in other streams.
//
// All sequence numbers are of the ring of the stream's device. A word is taken at its first use, given back when the stream is destroyed,
// and reused when the GPU has written all pending numbers: its value never decreases, so events recorded in a destroyed stream stay valid.
// Any thread, lock-free but for the first use; kept in the program over a suspend.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "intercept/session/completion-words.h"
#include "intercept/session/latest-number.h"

namespace vgpu::client {

class StreamCompletion {
 public:
  // Nothing if all completion words are taken.
  std::optional<uint32_t> take(CompletionWords& completions, unsigned device) {
    const uint32_t own = completion.load(std::memory_order_relaxed);
    return own != none ? std::optional(own) : takeFirst(completions, device);
  }
  // The GPU will write `sequence`. Call before the frame is published. `thread`: as for LatestNumber::raise().
  void expect(const void* thread, uint64_t sequence) { last.raise(thread, sequence); }
  // The largest number that the GPU will write for this stream; 0: none. The word's value may still be an earlier stream's.
  uint64_t expected() const { return last.get(); }
  // Nothing before the first use.
  std::optional<uint32_t> find() const;

  // Gives the word back: the stream, of `device`, is about to be destroyed.
  void end(CompletionWords& completions, unsigned device);
  // For reuse by another stream.
  void reset();

 private:
  static constexpr uint32_t none = ~uint32_t{0};

  std::optional<uint32_t> takeFirst(CompletionWords& completions, unsigned device);

  std::atomic<uint32_t> completion{none};
  LatestNumber last;
};

}  // namespace vgpu::client
