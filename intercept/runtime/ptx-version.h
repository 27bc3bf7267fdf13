#pragma once
#include <span>

namespace vgpu::runtime {

/// A newer compiler's text would be refused by the device's driver, which takes that compiler's machine code: it is made text of the
/// driver's version (CUDA_VERSION). What that one has not is refused by name. In place, of the same size.
void lowerPtxVersion(std::span<char> text);

}  // namespace vgpu::runtime
