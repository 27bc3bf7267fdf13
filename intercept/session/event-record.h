// An event's latest record: its frame's sequence number, and the completion word into which the GPU writes it
// (stream-completion.h). Both are in one word, so that a reader always gets the two of one record, however many threads record
// the event meanwhile; the later position in the ring wins, as it does in the worker. Any thread, without locks.
#pragma once

#include <cstdint>

#include "intercept/session/latest-number.h"
#include "vgpu/wire/segment.h"

namespace vgpu::client {

class EventRecord {
 public:
  struct Value {
    uint64_t sequence = 0;  // 0: never recorded
    uint32_t completion = 0;
  };

  Value get() const {
    uint64_t word = latest.get(std::memory_order_acquire);
    uint64_t unit = word >> wordBits;
    return {unit == 0 ? 0 : (unit - 1) * frameUnit + 1, static_cast<uint32_t>(word % completionWordCount)};
  }
  // `thread` is as LatestNumber::raise() has it.
  void set(const void* thread, Value record) {
    latest.raise(thread, (record.sequence + frameUnit - 1) / frameUnit << wordBits | record.completion, std::memory_order_release);
  }
  void reset() { latest.reset(); }

 private:
  // A sequence number is one more than a multiple of frameUnit (docs/ring.md): 49 bits for it are 32 PiB of frames, a year of
  // ten million a second.
  static constexpr unsigned wordBits = 15;
  static_assert(completionWordCount == 1 << wordBits);

  LatestNumber latest;
};

// A place in a stream of `device`, which its GPU has passed when that number is in that completion word (fenceStream).
struct StreamFence {
  unsigned device = 0;
  EventRecord::Value record;  // 0: passed
};

}  // namespace vgpu::client
