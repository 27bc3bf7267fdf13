// The unconsumed end of each ring of a session: the frames from the barrier to the head that the program reserved, and the
// bytes of the staging slabs that those frames name. They travel with the snapshot and are executed after it.
//
// Read from shared memory that the program can change, so it is copied first and looked at afterwards.
#pragma once

#include <capnp/common.h>
#include <kj/array.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "cuda-methods.h"
#include "vgpu/objects/ring-cut.h"
#include "vgpu/wire/segment.h"

namespace vgpu::snapshot {

constexpr uint64_t maxPendingCallsBytes = maxDevices * ringBytes + slabCount * (slabBytes + 16) + 4096;

struct SlabContent {
  uint32_t slab = 0;
  std::vector<std::byte> bytes;  // the first ones of it; empty where a frame only writes into the slab
};

// A ring at the barrier.
struct RingState {
  uint64_t device = 0, barrier = 0, head = 0;  // first frame not executed, end of the last one reserved
  bool operator==(const RingState&) const = default;
};

struct PendingRing : RingState {
  std::vector<std::byte> frames;  // [barrier, head) of the ring
};

struct PendingCalls {
  std::vector<PendingRing> rings;  // those that are open, by device
  std::vector<SlabContent> slabs;
  uint64_t frameCount = 0;

  RingCut barrier() const;
};

// Of a segment whose gate is closed. Throws kj::Exception where a frame is incomplete or no valid message.
PendingCalls capturePendingCalls(const Segment& segment, const RingCut& barrier);

// The methods of its frames.
std::set<api::Method> methodsOf(const PendingCalls& pending);
// Calls `visit` with the method and the message of each frame.
void visitFrames(const PendingCalls& pending, const std::function<void(api::Method, kj::ArrayPtr<const capnp::word>)>& visit);

std::vector<std::byte> encodePendingCalls(const PendingCalls& pending);
// Throws kj::Exception that says what of it makes no sense.
PendingCalls decodePendingCalls(std::span<const std::byte> bytes);

// Throws kj::Exception unless `segment` is that of the program at this barrier, or has never been used.
void requireSamePlace(const PendingCalls& pending, const Segment& segment);

// Writes the frames to their positions, their sequence numbers last, and the slabs' bytes.
void putBack(const PendingCalls& pending, const Segment& segment);

}  // namespace vgpu::snapshot
