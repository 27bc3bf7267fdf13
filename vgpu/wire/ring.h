// A ring: one ordered stream of frames from many program threads to the worker's thread for one GPU. A session has one ring per GPU;
// docs/ring.md says what orders frames of different rings (awaitRing).
//
// A writer reserves [position, position + bytes) by fetch-add on `head`, waits until the consumer is less than a ring behind, fills the
// frame, and stores its sequence number (position + 1) last. The consumer looks only at the position where the next frame must begin, so
// frames are consumed in the order of reservation, regardless of the order of completion.
//
// Invariant: memory from `head` to `tail + ringBytes` is zero. The consumer zeroes a frame before it moves `tail`, so the bytes
// of an older frame are never taken for a sequence number, and a Cap'n Proto builder finds the zeros that it requires.
//
// Memory order. sequence number: release store by the writer, acquire load by the consumer, so the writes of the frame's bytes happen
// before its execution. tail: sequentially consistent store by the consumer after zeroing and before its load of `writersWaiting`; acquire
// load by writers, so the zeroing happens before the writes of the new frame. head: distributes the space; its fetch-adds are acquire and
// release because they also order writers against a consumer that goes to sleep: the consumer sets `consumerSleeping` and then adds 0 to
// `head`; a writer loads `consumerSleeping` after its own fetch-add. One of the two fetch-adds comes first. If it is the consumer's, the
// writer sees the flag and wakes it; if it is the writer's, the consumer sees that a frame is coming and does not sleep for long.
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
  std::byte* frame;  // `bytes` zero bytes; the header comes first
  uint32_t bytes;
  uint64_t sequence() const { return position + 1; }
  std::byte* body() const { return frame + sizeof(FrameHeader); }
};

// The size of a frame with a message of `words` words.
constexpr uint32_t frameBytes(uint64_t words) {
  return static_cast<uint32_t>(roundUp(sizeof(FrameHeader) + words * 8, frameUnit));
}
constexpr uint64_t maxMessageWords = (maxFrameBytes - sizeof(FrameHeader)) / 8;

class RingWriter {
 public:
  explicit RingWriter(const Segment& segment, unsigned device = 0)
      : header(segment.ring(device)),
        ring(segment.ringAt(device, 0)),
        device(static_cast<uint8_t>(device)),
        waking(segment.waking()) {}

  // Reserves the next frameBytes(words) bytes. Waits while the ring is full; returns nothing if `abandoned` becomes true. words <=
  // maxMessageWords. Any thread.
  std::optional<Reservation> reserve(uint64_t words, const std::atomic<bool>& abandoned) const {
    return occupy(claim(words), words, abandoned);
  }
  // The same in two steps: claim() reserves without waiting; its position must be passed to occupy().
  uint64_t claim(uint64_t words) const { return header.head.fetch_add(frameBytes(words), std::memory_order_acq_rel); }
  std::optional<Reservation> occupy(uint64_t position, uint64_t words, const std::atomic<bool>& abandoned) const {
    uint32_t bytes = frameBytes(words);
    uint64_t end = position + bytes;
    if (end - knownTail.load(std::memory_order_acquire) > ringBytes && !awaitRoom(end, abandoned)) return std::nullopt;
    return Reservation{position, ring + position % ringBytes, bytes};
  }

  // Completes the frame and wakes the worker if it sleeps. Afterwards the writer must not touch the frame's memory.
  void publish(const Reservation& frame, api::Method method, uint16_t slot) const;

  // Wakes the worker if it sleeps, because frames will follow soon; their writers then need not do it.
  void wakeConsumer() const {
    if (header.consumerSleeping.load(std::memory_order_acquire)) [[unlikely]] ringBell();
  }

 private:
  void ringBell() const;
  // Waits until the ring has room up to position `end`. Returns false if `abandoned` becomes true.
  bool awaitRoom(uint64_t end, const std::atomic<bool>& abandoned) const;

  RingHeader& header;
  std::byte* const ring;
  const uint8_t device;
  const Waking waking;
  // The latest value of `tail` that any writer has loaded. The consumer writes `tail` with every frame, so loading `tail` is a cache miss;
  // this copy suffices until the ring seems full. Its release store and acquire load make the zeros, which the writer that loaded `tail`
  // has seen, visible to the other writers.
  alignas(64) mutable std::atomic<uint64_t> knownTail{0};
};

// The consumer's own copy of a frame.
struct Frame {
  uint64_t position;
  uint32_t bytes;
  api::Method method;  // validated
  uint16_t slot;       // < slotCount
  uint8_t device;      // the device of the ring
  kj::ArrayPtr<const capnp::word> words;  // the message's only segment, followed by zeros
  uint64_t sequence() const { return position + 1; }
};

class RingReader {
 public:
  // Reads the ring of `device`, from `position`: 0, or the barrier of a snapshot.
  RingReader(const Segment& segment, uint64_t position, unsigned device = 0);

  // Copies the next frame out and checks its header; returns nothing if none is complete. The frame's body is valid until the next call of
  // next() or release(). Throws kj::Exception on a frame that the client library never writes: the session must end.
  std::optional<Frame> next();
  // As next(), for the frame behind `frame`, which stays valid; returns nothing if there is no room for more copies. next() returns the
  // frame again unless it is released.
  std::optional<Frame> after(const Frame& frame);
  // The method of the frame behind `frame`, as its header says at this moment, unchecked. Returns nothing if that frame is not complete.
  std::optional<uint16_t> methodAfter(const Frame& frame) const;
  // Zeroes the frames before `end`, the end of a frame that next() or after() returned, and gives their space back to the writers. Call it
  // when the frames have been executed.
  void release(uint64_t end);
  void release() { release(tail + current); }

  // To sleep without missing a wake-up, the consumer reads bell(), checks whatever wake() announces, and passes the value to sleep(), which
  // returns at once if wake() was called since.
  uint32_t bell() const { return header.doorbell.load(); }
  void wake();
  // Sleeps until a frame may be there, `nanoseconds` have passed, or wake() is called. If a writer has already reserved a frame, for at
  // most a millisecond: that frame may be completed without a wake-up.
  void sleep(uint32_t bell, uint64_t nanoseconds);
  // The same without checking for frames.
  void awaitBell(uint32_t bell, uint64_t nanoseconds);

  uint64_t position() const { return tail; }

 private:
  // The size of the buffer for frames read ahead of their release, not counting the last one.
  static constexpr uint64_t aheadBytes = 256 * KiB;

  std::byte* at(uint64_t position) const { return segment.ringAt(device, position); }
  std::optional<Frame> copyAt(uint64_t position);

  const Segment& segment;
  const unsigned device;
  RingHeader& header;
  uint64_t tail;                      // the consumer's own; writers use the copy in shared memory
  uint32_t current = 0;               // size of the frame that next() returned
  std::unique_ptr<std::byte[]> copy;  // of the frames from `tail` on
};

}  // namespace vgpu
