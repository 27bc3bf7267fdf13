// The part of a warp that lane operations use: the lanes of its current frame. The first base of Warp.
#pragma once

#include <cstddef>

namespace vgpu::emulator {

struct LaneFrame {
  std::byte* frame = nullptr;
};

}  // namespace vgpu::emulator
