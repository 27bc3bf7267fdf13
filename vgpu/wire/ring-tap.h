// Reads a ring without executing its frames: for the relay beside a program whose frames are executed elsewhere. Copies frames out as they
// become complete, and frees their space when it learns that the worker has consumed them.
//
// Plays the consumer's part in the ring's protocol (ring.h), including sleep and wake-up. Used by one thread.
#pragma once

#include <memory>
#include <optional>

#include "vgpu/wire/mirror.h"
#include "vgpu/wire/segment.h"

namespace vgpu {

class RingTap {
 public:
  // Begins at the ring's tail.
  RingTap(const Segment& segment, unsigned device);

  // Copies the next complete frame out; the bytes are valid until the next call. Throws kj::Exception on a frame that the client library
  // never writes.
  std::optional<std::span<const std::byte>> next();
  // The end of the last frame taken.
  uint64_t position() const { return cursor; }
  // Whether there are frames, complete or being written, that have not been taken.
  bool hasMore() const { return header.head.load(std::memory_order_acquire) != cursor; }

  // The worker has consumed everything before `end`. Throws kj::Exception if that has not been taken yet.
  void release(uint64_t end);

  // Asks the next writer to ring the bell. Returns true if there is nothing to take, so that the caller may sleep. Call awake() afterwards
  // in either case.
  bool prepareToSleep();
  void awake() { header.consumerSleeping.store(0); }
  std::atomic<uint32_t>& bell() const { return header.doorbell; }

 private:
  const Segment& segment;
  const unsigned device;
  RingHeader& header;
  uint64_t cursor, tail;
  std::unique_ptr<std::byte[]> copy;
};

}  // namespace vgpu
