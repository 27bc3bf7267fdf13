// What the decoders of compressed blocks share.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace vgpu::emulator {

// A block's bits, from the lowest.
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

// Which of two or three subsets an element is of, and the elements whose index lacks its highest bit, besides element 0.
unsigned subsetOf(unsigned subsets, unsigned partition, unsigned element);
bool isAnchor(unsigned subsets, unsigned partition, unsigned element);

// Of 64.
int weightOf(unsigned indexBits, unsigned index);
inline int interpolate(int from, int to, int weight) { return (from * (64 - weight) + to * weight + 32) >> 6; }

// The index of an element, in indices of so many bits that lie one behind the other from where `bits` is.
unsigned indexAt(BlockBits bits, unsigned indexBits, unsigned subsets, unsigned partition, unsigned element);

std::array<double, 4> decodeBc6(const std::byte* block, unsigned element, bool isSigned);
std::array<double, 4> decodeBc7(const std::byte* block, unsigned element);

}  // namespace vgpu::emulator
