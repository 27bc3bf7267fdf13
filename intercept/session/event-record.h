// An event's latest record: its frame's sequence number, and the completion word into which the GPU writes it (stream-completion.h). One
// atomic word has both, so that a reader always gets the pair of one record, however many threads record the event meanwhile; the record
// later in the ring wins, as in the worker. Any thread, lock-free.
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
  // `thread`: as for LatestNumber::raise().
  void set(const void* thread, Value record) {
    latest.raise(thread, (record.sequence + frameUnit - 1) / frameUnit << wordBits | record.completion, std::memory_order_release);
  }
  void reset() { latest.reset(); }

 private:
  // A sequence number is a multiple of frameUnit plus one (docs/ring.md): 49 bits of it are 32 PiB of frames, a year at ten million frames
  // a second.
  static constexpr unsigned wordBits = 15;
  static_assert(completionWordCount == 1 << wordBits);

  LatestNumber latest;
};

// A point in a stream of `device`: its GPU has passed it once that completion word has that number (fenceStream).
struct StreamFence {
  unsigned device = 0;
  EventRecord::Value record;  // 0: passed
};

}  // namespace vgpu::client
