// The elements of a CUDA array, by the numbers of CUarray_format. Sizes are those of cuda.h's formats; which formats a driver accepts in
// which shape, only the driver knows (docs/facts.md).
#pragma once

#include <cstdint>

namespace vgpu {

// The unit in which an array is copied: an element, or for block-compressed formats a block of side × side elements.
struct ArrayUnit {
  uint32_t bytes = 0;   // 0: cuda.h has no such format, or only the format's planes have bytes
  uint32_t side = 1;    // in elements; 4 for a block-compressed format
  uint32_t planes = 0;  // number of planes, each an array of its own, if the array has several

  constexpr bool isKnown() const { return bytes != 0 || planes != 0; }
  // Units for so many elements; a block that extends beyond an edge counts.
  constexpr uint64_t count(uint64_t elements) const { return (elements + side - 1) / side; }
};

constexpr ArrayUnit arrayUnit(uint32_t format, uint32_t channels) {
  auto plain = [&](uint32_t channelBytes) { return ArrayUnit{channelBytes * channels, 1, 0}; };
  switch (format) {
    case 0x01: case 0x08:                        // unsigned and signed integers of 8 bits
    case 0xa5: case 0xa8:                        // YUY2, AYUV
    case 0xc0: case 0xc1: case 0xc2:             // normalized, 8 bits
    case 0xc6: case 0xc7: case 0xc8: return plain(1);
    case 0x02: case 0x09: case 0x10:             // 16 bits, and half
    case 0xa6: case 0xa7: case 0xb1:             // Y210, Y216, Y416
    case 0xc3: case 0xc4: case 0xc5:             // normalized, 16 bits
    case 0xc9: case 0xca: case 0xcb: return plain(2);
    case 0x03: case 0x0a: case 0x20:             // 32 bits, and float
    case 0xa9: return plain(4);                  // Y410
    case 0x50: return {4, 1, 0};                 // 10, 10, 10 and 2 bits
    case 0x91: case 0x92:                        // BC1
    case 0x97: case 0x98: return {8, 4, 0};      // BC4
    case 0x93: case 0x94: case 0x95: case 0x96:  // BC2, BC3
    case 0x99: case 0x9a: case 0x9b: case 0x9c:  // BC5, BC6H
    case 0x9d: case 0x9e: return {16, 4, 0};     // BC7
    case 0x9f: case 0xa1: case 0xa2:             // P010, P016, NV16
    case 0xa3: case 0xa4: case 0xb0:             // P210, P216, NV12
    case 0xb4: case 0xb5: return {0, 1, 2};      // YUV444, semi-planar
    case 0xb2: case 0xb3: return {0, 1, 3};      // Y444, planar
    default: return {};
  }
}

}  // namespace vgpu
