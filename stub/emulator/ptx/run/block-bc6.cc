// BC6H: red, green and blue as halves, no alpha, one or two subsets.
#include <algorithm>
#include <string_view>

#include "stub/emulator/ptx/lanes/half-values.h"
#include "stub/emulator/ptx/run/block-bits.h"

namespace vgpu::emulator {
namespace {

// A row of the specification's table: the bits after the mode's, from the lowest. r, g and b are channels; w and x are the end points of
// the first subset, y and z those of the second; then a bit, or a range of bits of which the first number comes first.
struct Mode {
  uint8_t number, bits;  // value and number of the bits that select the mode
  bool isTransformed;    // x, y and z are differences from w
  uint8_t endBits, deltaBits[3];
  std::string_view layout;
};
constexpr Mode modes[] = {
    {0x00, 2, true, 10, {5, 5, 5},
     "gy4 by4 bz4 rw0-9 gw0-9 bw0-9 rx0-4 gz4 gy0-3 gx0-4 bz0 gz0-3 bx0-4 bz1 by0-3 ry0-4 bz2 rz0-4 bz3"},
    {0x01, 2, true, 7, {6, 6, 6},
     "gy5 gz4 gz5 rw0-6 bz0 bz1 by4 gw0-6 by5 bz2 gy4 bw0-6 bz3 bz5 bz4 rx0-5 gy0-3 gx0-5 gz0-3 bx0-5 by0-3 ry0-5 rz0-5"},
    {0x02, 5, true, 11, {5, 4, 4},
     "rw0-9 gw0-9 bw0-9 rx0-4 rw10 gy0-3 gx0-3 gw10 bz0 gz0-3 bx0-3 bw10 bz1 by0-3 ry0-4 bz2 rz0-4 bz3"},
    {0x06, 5, true, 11, {4, 5, 4},
     "rw0-9 gw0-9 bw0-9 rx0-3 rw10 gz4 gy0-3 gx0-4 gw10 gz0-3 bx0-3 bw10 bz1 by0-3 ry0-3 bz0 bz2 rz0-3 gy4 bz3"},
    {0x0a, 5, true, 11, {4, 4, 5},
     "rw0-9 gw0-9 bw0-9 rx0-3 rw10 by4 gy0-3 gx0-3 gw10 bz0 gz0-3 bx0-4 bw10 by0-3 ry0-3 bz1 bz2 rz0-3 bz4 bz3"},
    {0x0e, 5, true, 9, {5, 5, 5},
     "rw0-8 by4 gw0-8 gy4 bw0-8 bz4 rx0-4 gz4 gy0-3 gx0-4 bz0 gz0-3 bx0-4 bz1 by0-3 ry0-4 bz2 rz0-4 bz3"},
    {0x12, 5, true, 8, {6, 5, 5},
     "rw0-7 gz4 by4 gw0-7 bz2 gy4 bw0-7 bz3 bz4 rx0-5 gy0-3 gx0-4 bz0 gz0-3 bx0-4 bz1 by0-3 ry0-5 rz0-5"},
    {0x16, 5, true, 8, {5, 6, 5},
     "rw0-7 bz0 by4 gw0-7 gy5 gy4 bw0-7 gz5 bz4 rx0-4 gz4 gy0-3 gx0-5 gz0-3 bx0-4 bz1 by0-3 ry0-4 bz2 rz0-4 bz3"},
    {0x1a, 5, true, 8, {5, 5, 6},
     "rw0-7 bz1 by4 gw0-7 by5 gy4 bw0-7 bz5 bz4 rx0-4 gz4 gy0-3 gx0-4 bz0 gz0-3 bx0-5 by0-3 ry0-4 bz2 rz0-4 bz3"},
    {0x1e, 5, false, 6, {6, 6, 6},
     "rw0-5 gz4 bz0 bz1 by4 gw0-5 gy5 by5 bz2 gy4 bw0-5 gz5 bz3 bz5 bz4 rx0-5 gy0-3 gx0-5 gz0-3 bx0-5 by0-3 ry0-5 rz0-5"},
    {0x03, 5, false, 10, {10, 10, 10}, "rw0-9 gw0-9 bw0-9 rx0-9 gx0-9 bx0-9"},
    {0x07, 5, true, 11, {9, 9, 9}, "rw0-9 gw0-9 bw0-9 rx0-8 rw10 gx0-8 gw10 bx0-8 bw10"},
    {0x0b, 5, true, 12, {8, 8, 8}, "rw0-9 gw0-9 bw0-9 rx0-7 rw11 rw10 gx0-7 gw11 gw10 bx0-7 bw11 bw10"},
    {0x0f, 5, true, 16, {4, 4, 4},
     "rw0-9 gw0-9 bw0-9 rx0-3 rw15 rw14 rw13 rw12 rw11 rw10 gx0-3 gw15 gw14 gw13 gw12 gw11 gw10 bx0-3 bw15 bw14 bw13 bw12 bw11 bw10"},
};

struct Ends {
  uint32_t value[3][4] = {};  // by channel, and w, x, y, z
};

Ends readEnds(BlockBits& bits, std::string_view layout) {
  Ends ends;
  for (size_t at = 0; at < layout.size(); ++at) {
    uint32_t& end = ends.value[layout[at] == 'r' ? 0 : layout[at] == 'g' ? 1 : 2][layout[at + 1] - 'w'];
    at += 2;
    auto number = [&] {
      unsigned value = 0;
      for (; at < layout.size() && layout[at] >= '0' && layout[at] <= '9'; ++at) value = value * 10 + (layout[at] - '0');
      return value;
    };
    const unsigned low = number();
    unsigned high = low;
    if (at < layout.size() && layout[at] == '-') ++at, high = number();
    end |= bits.take(high - low + 1) << low;
  }
  return ends;
}

int32_t signExtended(uint32_t value, unsigned bits) { return static_cast<int32_t>(value << (32 - bits)) >> (32 - bits); }

int unquantized(int32_t value, unsigned bits, bool isSigned) {
  if (!isSigned) {
    if (bits >= 15 || value == 0) return value;
    return value == (1 << bits) - 1 ? 0xffff : ((value << 16) + 0x8000) >> bits;
  }
  if (bits >= 16 || value == 0) return value;
  const int32_t size = std::abs(value);
  const int32_t wide = size >= (1 << (bits - 1)) - 1 ? 0x7fff : ((size << 15) + 0x4000) >> (bits - 1);
  return value < 0 ? -wide : wide;
}

uint16_t halfOf(int value, bool isSigned) {
  if (!isSigned) return static_cast<uint16_t>((value * 31) >> 6);
  return static_cast<uint16_t>(value < 0 ? ((-value * 31) >> 5) | 0x8000 : (value * 31) >> 5);
}

}  // namespace

std::array<double, 4> decodeBc6(const std::byte* block, unsigned element, bool isSigned) {
  BlockBits bits(block);
  unsigned number = bits.take(2), numberBits = 2;
  if (number > 1) number |= bits.take(3) << 2, numberBits = 5;
  const Mode* mode = std::find_if(std::begin(modes), std::end(modes),
                                  [&](const Mode& each) { return each.number == number && each.bits == numberBits; });
  if (mode == std::end(modes)) return {0, 0, 0, 1};
  Ends ends = readEnds(bits, mode->layout);
  const bool isOne = mode->number == 0x03 || mode->number == 0x07 || mode->number == 0x0b || mode->number == 0x0f;
  const unsigned subsets = isOne ? 1 : 2, partition = isOne ? 0 : bits.take(5), indexBits = isOne ? 4 : 3;
  const unsigned subset = subsetOf(subsets, partition, element);
  const int weight = weightOf(indexBits, indexAt(bits, indexBits, subsets, partition, element));
  std::array<double, 4> colour{0, 0, 0, 1};
  for (unsigned channel = 0; channel < 3; ++channel) {
    auto endOf = [&](unsigned end) {
      uint32_t value = ends.value[channel][end];
      if (mode->isTransformed && end != 0) {
        const auto delta = static_cast<uint32_t>(signExtended(value, mode->deltaBits[channel]));
        value = (ends.value[channel][0] + delta) & ((1u << mode->endBits) - 1);
      }
      return unquantized(isSigned ? signExtended(value, mode->endBits) : static_cast<int32_t>(value), mode->endBits, isSigned);
    };
    colour[channel] = halfValue(halfOf(interpolate(endOf(2 * subset), endOf(2 * subset + 1), weight), isSigned));
  }
  return colour;
}

}  // namespace vgpu::emulator
