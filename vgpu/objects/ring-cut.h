// A cut of a session, in which each GPU has its own ring: a position in each ring. Exactly the frames before these positions have been
// executed.
#pragma once

#include <array>
#include <cstdint>

namespace vgpu {

// The place of a frame: a position in its device's ring.
struct FramePlace {
  uint8_t ring = 0;
  uint64_t position = 0;
  auto operator<=>(const FramePlace&) const = default;
};

class RingCut {
 public:
  static constexpr unsigned mostRings = 16;  // the number of devices that a handle can name (vgpu/api/handle.h)

  // A cut with the same position in every ring.
  RingCut(uint64_t position = 0) { positions.fill(position); }

  uint64_t& operator[](unsigned ring) { return positions[ring]; }
  uint64_t operator[](unsigned ring) const { return positions[ring]; }

  bool hasExecuted(const FramePlace& frame) const { return frame.ring < mostRings && frame.position < positions[frame.ring]; }

 private:
  std::array<uint64_t, mostRings> positions;
};

}  // namespace vgpu
