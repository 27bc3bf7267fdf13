// A moment of a session in which each GPU has a ring of its own: a position in each ring. The frames before these positions have
// been executed, no others.
#pragma once

#include <array>
#include <cstdint>

namespace vgpu {

// Where a frame was: in the ring of its device, at a position there.
struct FramePlace {
  uint8_t ring = 0;
  uint64_t position = 0;
  auto operator<=>(const FramePlace&) const = default;
};

class RingCut {
 public:
  static constexpr unsigned mostRings = 16;  // as many as a handle can name devices (vgpu/api/handle.h)

  // The same position in every ring.
  RingCut(uint64_t position = 0) { positions.fill(position); }

  uint64_t& operator[](unsigned ring) { return positions[ring]; }
  uint64_t operator[](unsigned ring) const { return positions[ring]; }

  bool hasExecuted(const FramePlace& frame) const { return frame.ring < mostRings && frame.position < positions[frame.ring]; }

 private:
  std::array<uint64_t, mostRings> positions;
};

}  // namespace vgpu
