// The ring: one ordered stream of frames from many program threads to one worker.
//
// A writer reserves [position, position + bytes) by fetch-add on `head`, waits until the consumer is less than a ring
// behind, fills the frame, and stores its sequence number (position + 1) last. The consumer looks at the one place where the
// next frame must begin, so frames are consumed in the order of reservation, whatever order they were completed in.
//
// Invariant: memory from `head` to `tail + ringBytes` is zero. The consumer zeroes a frame before it moves `tail`, so a
// sequence number can never be taken from the bytes of an older frame, and a Cap'n Proto builder finds the zeros it wants.
//
// Memory order. sequence number: release store by the writer, acquire load by the consumer: the frame's bytes happen before its
// execution. tail: release store by the consumer after zeroing, acquire load by writers: the zeros happen before the new
// frame's bytes. head: it divides the space, and is changed by acquire and release because it also settles who sees whom
// when the consumer goes to sleep: the consumer marks itself asleep and then adds nothing to `head`; a writer looks at the
// mark after its own addition. Of two changes of one word one comes first. Where it is the consumer's, the writer sees the
// mark and wakes it; where it is the writer's, the consumer sees that a frame is coming and does not sleep for long.
#pragma once

#include <capnp/common.h>
#include <kj/array.h>

#include <memory>
#include <optional>

#include "cuda-methods.h"
#include "vgpu/wire/segment.h"

namespace vgpu {

struct Reservation {
  uint64_t position;
  std::byte* frame;  // `bytes` of zeros; the header first
  uint32_t bytes;
  uint64_t sequence() const { return position + 1; }
  std::byte* body() const { return frame + sizeof(FrameHeader); }
};

// Bytes of a frame with `words` words of message.
constexpr uint32_t frameBytes(uint64_t words) {
  return static_cast<uint32_t>(roundUp(sizeof(FrameHeader) + words * 8, frameUnit));
}
constexpr uint64_t maxMessageWords = (maxFrameBytes - sizeof(FrameHeader)) / 8;

class RingWriter {
 public:
  explicit RingWriter(const Segment& segment) : header(segment.header()), ring(segment.ringAt(0)) {}

  // Takes the next place in the order, of frameBytes(words). Waits while the ring is full; returns nothing once
  // `abandoned` is true. words <= maxMessageWords. Any thread.
  std::optional<Reservation> reserve(uint64_t words, const std::atomic<bool>& abandoned) const {
    uint32_t bytes = frameBytes(words);
    uint64_t position = header.head.fetch_add(bytes, std::memory_order_acq_rel), end = position + bytes;
    if (end - knownTail.load(std::memory_order_acquire) > ringBytes && !awaitRoom(end, abandoned)) return std::nullopt;
    return Reservation{position, ring + position % ringBytes, bytes};
  }

  // Completes the frame and wakes the worker if it sleeps. The frame's memory is not the writer's any more.
  void publish(const Reservation& frame, api::Method method, uint16_t slot, uint8_t device) const;

 private:
  // Waits until the ring has room up to the position `end`. False once `abandoned` is true.
  bool awaitRoom(uint64_t end, const std::atomic<bool>& abandoned) const;

  SegmentHeader& header;
  std::byte* const ring;
  // What any writer last saw of `tail`. The consumer writes that with every frame, so looking there is a cache miss; this
  // is enough until a ring is full. Release and acquire pass on what the one who looked has seen: the zeros.
  alignas(64) mutable std::atomic<uint64_t> knownTail{0};
};

// A frame out of shared memory: the consumer's own copy.
struct Frame {
  uint64_t position;
  uint32_t bytes;
  api::Method method;  // checked
  uint16_t slot;       // < slotCount
  uint8_t device;      // < maxDevices
  kj::ArrayPtr<const capnp::word> words;  // the message's one segment, with zeros behind it
  uint64_t sequence() const { return position + 1; }
};

class RingReader {
 public:
  // Begins at `position`: 0, or the barrier of a snapshot.
  RingReader(const Segment& segment, uint64_t position);

  // Copies the next frame out and checks its header; nothing where none is complete. The frame's body is valid until the
  // next call. Throws kj::Exception on a frame that no honest program writes: the session must end.
  std::optional<Frame> next();
  // Gives the place of the last frame back to the writers. Call it when the frame has been executed.
  void release();

  // Sleeps until a frame may be there, or `nanoseconds` have passed, or wake(). For a millisecond at most where a writer is
  // at work: its frame may come without a call.
  void sleep(uint64_t nanoseconds);
  void wake();

  uint64_t position() const { return tail; }

 private:
  const Segment& segment;
  uint64_t tail;            // ours; what shared memory says is for the writers
  uint32_t current = 0;     // bytes of the frame that next() returned
  std::unique_ptr<std::byte[]> copy;
};

}  // namespace vgpu
