// BC7: colours of 4 to 8 bits in up to three subsets.
#include "stub/emulator/ptx/run/block-bits.h"

#include <utility>

namespace vgpu::emulator {
namespace {

struct Mode {
  uint8_t subsets, partitionBits, rotationBits, selectionBits, colourBits, alphaBits;
  bool endpointBits, sharedBits;  // an additional lowest bit for each end point, or for both of a subset
  uint8_t indexBits, secondBits;
};
constexpr Mode modes[8] = {{3, 4, 0, 0, 4, 0, true, false, 3, 0},  {2, 6, 0, 0, 6, 0, false, true, 3, 0},
                           {3, 6, 0, 0, 5, 0, false, false, 2, 0}, {2, 6, 0, 0, 7, 0, true, false, 2, 0},
                           {1, 0, 2, 1, 5, 6, false, false, 2, 3}, {1, 0, 2, 0, 7, 8, false, false, 2, 2},
                           {1, 0, 0, 0, 7, 7, true, false, 4, 0},  {2, 6, 0, 0, 5, 5, true, false, 2, 0}};

int widened(uint32_t value, unsigned bits) { return static_cast<int>(value << (8 - bits) | (value << (8 - bits)) >> bits); }

}  // namespace

std::array<double, 4> decodeBc7(const std::byte* block, unsigned element) {
  BlockBits bits(block);
  unsigned number = 0;
  while (number < 8 && bits.take(1) == 0) ++number;
  if (number == 8) return {};
  const Mode& mode = modes[number];
  const unsigned partition = bits.take(mode.partitionBits), rotation = bits.take(mode.rotationBits);
  const unsigned selection = bits.take(mode.selectionBits);
  const unsigned ends = 2u * mode.subsets, channels = mode.alphaBits != 0 ? 4 : 3;
  uint32_t values[4][6] = {};
  for (unsigned channel = 0; channel < channels; ++channel)
    for (unsigned end = 0; end < ends; ++end) values[channel][end] = bits.take(channel == 3 ? mode.alphaBits : mode.colourBits);
  const bool hasLowest = mode.endpointBits || mode.sharedBits;
  uint32_t lowest[6] = {};
  for (unsigned end = 0; end < ends && hasLowest; ++end)
    lowest[end] = mode.sharedBits && end % 2 != 0 ? lowest[end - 1] : bits.take(1);
  const unsigned subset = subsetOf(mode.subsets, partition, element);
  auto endOf = [&](unsigned channel, unsigned end) {
    const unsigned given = channel == 3 ? mode.alphaBits : mode.colourBits;
    if (given == 0) return 255;
    const uint32_t value = values[channel][2 * subset + end];
    return hasLowest ? widened(value << 1 | lowest[2 * subset + end], given + 1) : widened(value, given);
  };
  unsigned colourIndex = indexAt(bits, mode.indexBits, mode.subsets, partition, element), colourBits = mode.indexBits;
  unsigned alphaIndex = colourIndex, alphaBits = colourBits;
  if (mode.secondBits != 0) {
    bits.skip(16u * mode.indexBits - 1);
    alphaIndex = indexAt(bits, mode.secondBits, 1, 0, element), alphaBits = mode.secondBits;
    if (selection != 0) std::swap(colourIndex, alphaIndex), std::swap(colourBits, alphaBits);
  }
  int result[4];
  for (unsigned channel = 0; channel < 4; ++channel)
    result[channel] = interpolate(endOf(channel, 0), endOf(channel, 1),
                                  channel == 3 ? weightOf(alphaBits, alphaIndex) : weightOf(colourBits, colourIndex));
  if (rotation != 0) std::swap(result[3], result[rotation - 1]);
  std::array<double, 4> colour;
  for (unsigned channel = 0; channel < 4; ++channel) colour[channel] = result[channel] / 255.0;
  return colour;
}

}  // namespace vgpu::emulator
