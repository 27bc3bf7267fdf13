// Decodes elements of block-compressed images: 4 × 4 elements in 8 or 16 bytes (BC1 to BC7; Khronos Data Format Specification, "S3TC",
// "RGTC", "BPTC"). Rounding that the specification leaves open is that of an H100 (docs/facts.md).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace vgpu::emulator {

enum class Coding : uint8_t { plain, tenBits, bc1, bc2, bc3, bc4, bc4Signed, bc5, bc5Signed, bc6, bc6Signed, bc7 };

constexpr bool isBlock(Coding coding) { return coding >= Coding::bc1; }
constexpr uint32_t blockBytes(Coding coding) {
  return coding == Coding::bc1 || coding == Coding::bc4 || coding == Coding::bc4Signed ? 8 : 16;
}

// Red, green, blue and alpha of the element at (x, y), each 0 to 3. Missing channels are 0, and 1 for alpha.
std::array<double, 4> decodeElement(Coding coding, const std::byte* block, unsigned x, unsigned y);

}  // namespace vgpu::emulator
