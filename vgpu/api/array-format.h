// Elements of CUDA arrays, by the numbers of CUarray_format: the formats that a session has.
#pragma once

#include <cstdint>

namespace vgpu {

// Bytes of a channel; 0 for block-compressed, video and normalized formats, whose elements nobody here can count.
constexpr uint32_t channelBytes(uint32_t format) {
  switch (format) {
    case 0x01:  // unsigned and signed, 8 bits
    case 0x08: return 1;
    case 0x02:  // unsigned and signed, 16 bits; half
    case 0x09:
    case 0x10: return 2;
    case 0x03:  // unsigned and signed, 32 bits; float
    case 0x0a:
    case 0x20: return 4;
    default: return 0;
  }
}

}  // namespace vgpu
