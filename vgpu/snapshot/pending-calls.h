// The frames that a session's worker has not consumed: in each ring, those from the barrier to the head that the program has reserved, and
// the bytes of the staging slabs that these frames name. They are part of the snapshot and are executed after it is restored.
//
// The program can change the shared memory at any time, so everything is copied out first and checked afterwards.
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
  std::vector<std::byte> bytes;  // its first bytes; empty if a frame only writes into the slab
};

// The state of a ring at the barrier.
struct RingState {
  uint64_t device = 0, barrier = 0, head = 0;  // `barrier`: the first frame not executed; `head`: the end of the last one reserved
  bool operator==(const RingState&) const = default;
};

struct PendingRing : RingState {
  std::vector<std::byte> frames;  // [barrier, head) of the ring
};

struct PendingCalls {
  std::vector<PendingRing> rings;  // the open rings, by device
  std::vector<SlabContent> slabs;
  uint64_t frameCount = 0;

  RingCut barrier() const;
};

// The gate of `segment` must be closed. Throws kj::Exception if a frame is incomplete or not a valid message.
PendingCalls capturePendingCalls(const Segment& segment, const RingCut& barrier);

// The methods of the pending frames.
std::set<api::Method> methodsOf(const PendingCalls& pending);
// Calls `visit` with the method and the message of each frame.
void visitFrames(const PendingCalls& pending, const std::function<void(api::Method, kj::ArrayPtr<const capnp::word>)>& visit);

std::vector<std::byte> encodePendingCalls(const PendingCalls& pending);
// Throws kj::Exception that says what is invalid.
PendingCalls decodePendingCalls(std::span<const std::byte> bytes);

// Throws kj::Exception unless `segment` is either the program's at this barrier, or has never been used.
void requireSamePlace(const PendingCalls& pending, const Segment& segment);

// Writes the slabs' bytes and the frames to their positions; a frame's sequence number is written last.
void putBack(const PendingCalls& pending, const Segment& segment);

}  // namespace vgpu::snapshot
