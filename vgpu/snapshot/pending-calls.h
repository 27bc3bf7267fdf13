// The unconsumed end of a session's ring: the frames from the barrier to the head that the program reserved, and the
// bytes of the staging slabs that those frames name. They travel with the snapshot and are executed after it.
//
// Read from shared memory that the program can change, so it is copied first and looked at afterwards.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "vgpu/wire/segment.h"

namespace vgpu::snapshot {

constexpr uint64_t maxPendingCallsBytes = ringBytes + slabCount * (slabBytes + 16) + 4096;

struct SlabContent {
  uint32_t slab = 0;
  std::vector<std::byte> bytes;  // the first ones of it; empty where a frame only writes into the slab
};

struct PendingCalls {
  uint64_t barrier = 0, head = 0;
  std::vector<std::byte> frames;  // [barrier, head) of the ring
  std::vector<SlabContent> slabs;
  uint64_t frameCount = 0;
};

// Of a segment whose gate is closed. Throws kj::Exception where a frame is incomplete or no valid message.
PendingCalls capturePendingCalls(const Segment& segment, uint64_t barrier);

std::vector<std::byte> encodePendingCalls(const PendingCalls& pending);
// Throws kj::Exception that says what of it makes no sense.
PendingCalls decodePendingCalls(std::span<const std::byte> bytes);

// Throws kj::Exception unless `segment` is that of the program at this barrier, or has never been used.
void requireSamePlace(const PendingCalls& pending, const Segment& segment);

// Writes the frames to their positions, their sequence numbers last, and the slabs' bytes.
void putBack(const PendingCalls& pending, const Segment& segment);

}  // namespace vgpu::snapshot
