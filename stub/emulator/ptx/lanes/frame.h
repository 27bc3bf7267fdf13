// What lane operations see of a warp: the lanes of its current frame. A Warp begins with it.
#pragma once

#include <cstddef>

namespace vgpu::emulator {

struct LaneFrame {
  std::byte* frame = nullptr;
};

}  // namespace vgpu::emulator
