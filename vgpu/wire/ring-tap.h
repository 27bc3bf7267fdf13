// A ring read without being consumed: by the relay beside a program, whose frames are executed elsewhere. It copies frames out as
// they become complete, and gives their space back when it is told that the worker has consumed them.
//
// It takes the consumer's part in the ring's protocol (ring.h), sleep and wake included. Used by one thread.
#pragma once

#include <memory>
#include <optional>

#include "vgpu/wire/mirror.h"
#include "vgpu/wire/segment.h"

namespace vgpu {

class RingTap {
 public:
  // From the ring's tail on.
  RingTap(const Segment& segment, unsigned device);

  // Copies the next complete frame out: its bytes, valid until the next call. Throws kj::Exception on one that the client library
  // never writes.
  std::optional<std::span<const std::byte>> next();
  // Up to where frames have been taken.
  uint64_t position() const { return cursor; }
  // Whether there are frames, or one is being written, that have not been taken.
  bool hasMore() const { return header.head.load(std::memory_order_acquire) != cursor; }

  // The worker has consumed everything before `end`. Throws kj::Exception if that has not been taken yet.
  void release(uint64_t end);

  // Asks the next writer to ring the bell. True if there is nothing to take: then the caller may sleep. Whoever has called it
  // calls awake() afterwards.
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
