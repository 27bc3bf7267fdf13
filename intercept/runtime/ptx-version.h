#pragma once
#include <span>

namespace vgpu::runtime {

/// Lowers the PTX version of a compiler newer than the device's driver to the driver's (CUDA_VERSION): natively the driver loads that
/// compiler's machine code, but it would refuse the newer text. Instructions that the driver lacks are refused by name. In place; the size
/// stays.
void lowerPtxVersion(std::span<char> text);

}  // namespace vgpu::runtime
