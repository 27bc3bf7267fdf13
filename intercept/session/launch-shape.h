// The shape of a kernel launch, as the program gives it.
#pragma once

namespace vgpu::client {

struct LaunchShape {
  unsigned gridX, gridY, gridZ, blockX, blockY, blockZ, sharedBytes;
  bool cooperative = false;
  bool operator==(const LaunchShape&) const = default;
};

}  // namespace vgpu::client
