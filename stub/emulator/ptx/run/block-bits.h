// Shared by the decoders of compressed blocks.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace vgpu::emulator {

// A block's bits, starting with the lowest.
class BlockBits {
 public:
  explicit BlockBits(const std::byte* block) { std::memcpy(words.data(), block, sizeof words); }
  uint32_t take(unsigned count) {
    uint32_t value = 0;
    for (unsigned i = 0; i < count; ++i, ++at) value |= static_cast<uint32_t>(words[at / 64] >> (at % 64) & 1) << i;
    return value;
  }
  void skip(unsigned count) { at += count; }

 private:
  std::array<uint64_t, 2> words{};
  unsigned at = 0;
};

// The subset, of two or three, to which an element belongs; and whether an element is an anchor, whose index lacks the highest bit (as does
// that of element 0).
unsigned subsetOf(unsigned subsets, unsigned partition, unsigned element);
bool isAnchor(unsigned subsets, unsigned partition, unsigned element);

// The weight, out of 64.
int weightOf(unsigned indexBits, unsigned index);
inline int interpolate(int from, int to, int weight) { return (from * (64 - weight) + to * weight + 32) >> 6; }

// The index of an element, in a list of indices of so many bits that begins at `bits`.
unsigned indexAt(BlockBits bits, unsigned indexBits, unsigned subsets, unsigned partition, unsigned element);

std::array<double, 4> decodeBc6(const std::byte* block, unsigned element, bool isSigned);
std::array<double, 4> decodeBc7(const std::byte* block, unsigned element);

}  // namespace vgpu::emulator
