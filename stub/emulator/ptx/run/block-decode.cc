#include "stub/emulator/ptx/run/block-decode.h"

#include <algorithm>
#include <cstdlib>

#include "stub/emulator/ptx/run/block-bits.h"

namespace vgpu::emulator {
namespace {

// ---- colours of 5, 6 and 5 bits: two end points, and values at thirds or the middle between them

int widened5(int v) { return v << 3 | v >> 2; }
int widened6(int v) { return v << 2 | v >> 4; }

// Values between a and b, of 8 bits. Red and blue are mixed before they are widened, green after that.
int thirdOf5(int a, int b) { return (2 * a + b) * 22 / 8; }
int halfOf5(int a, int b) { return (a + b) * 33 / 8; }
int mixOf6(int a, int b, int weight) {
  const int from = widened6(a), far = widened6(b) - from;
  return (256 * from + (far >> 2) + 128 + far * weight) >> 8;
}

std::array<double, 4> colourOf(const std::byte* block, unsigned element, bool hasHalves) {
  BlockBits bits(block);
  const auto first = static_cast<int>(bits.take(16)), second = static_cast<int>(bits.take(16));
  bits.skip(2 * element);
  const unsigned index = bits.take(2);
  const bool isThird = !hasHalves || first > second;
  if (!isThird && index == 3) return {0, 0, 0, 0};
  const int a = index % 2 == 0 ? first : second, b = index % 2 == 0 ? second : first;
  auto five = [&](int shift) {
    const int from = a >> shift & 31, to = b >> shift & 31;
    return index < 2 ? widened5(from) : isThird ? thirdOf5(from, to) : halfOf5(from, to);
  };
  const int from = a >> 5 & 63, to = b >> 5 & 63;
  const int green = index < 2 ? widened6(from) : mixOf6(from, to, isThird ? 80 : 128);
  auto part = [](int value) { return value / 255.0; };
  return {part(five(11)), part(green), part(five(0)), 1};
}

// ---- one channel: two end points of 8 bits, and six values between them, or four and the least and the largest value

struct Step {
  int from, to, steps, step;  // `step` of `steps`; 0 of 1: `from`
  bool isLeast = false, isMost = false;
};
Step stepOf(const std::byte* block, unsigned element, bool isSigned) {
  BlockBits bits(block);
  auto end = [&] {
    const auto value = static_cast<int>(bits.take(8));
    return isSigned ? std::max<int>(static_cast<int8_t>(value), -127) : value;
  };
  const int first = end(), second = end();
  bits.skip(3 * element);
  const auto index = static_cast<int>(bits.take(3));
  if (index < 2) return {index == 0 ? first : second, 0, 1, 0};
  if (first > second) return {first, second, 7, index - 1};
  return {first, second, 5, index - 1, index == 6, index == 7};
}

// The weight, out of 64.
int stepWeight(const Step& step) {
  constexpr int sevenths[] = {0, 9, 18, 28, 36, 46, 55, 64}, fifths[] = {0, 12, 24, 40, 52, 64};
  return step.steps == 7 ? sevenths[step.step] : step.steps == 5 ? fifths[step.step] : 0;
}
// The end point whose lowest bits are appended to a mixture.
int nearer(const Step& step) { return step.step == 3 || step.step > 4 || (step.steps == 5 && step.step == 4) ? step.to : step.from; }

// BC4 and BC5: as 16 bits, or as 15 bits and a sign.
double channelOf(const std::byte* block, unsigned element, bool isSigned) {
  const Step step = stepOf(block, element, isSigned);
  if (step.isLeast) return isSigned ? -1.0 : 0.0;
  if (step.isMost) return 1;
  const int weight = stepWeight(step), mixed = 4 * (step.from * (64 - weight) + step.to * weight), low = nearer(step);
  if (!isSigned) return (mixed + low) / 65535.0;
  const int size = std::abs(low), lowBits = 2 * size + (size >> 6);
  return (mixed + (low < 0 ? -lowBits : lowBits)) / 32767.0;
}

// BC3: as 8 bits.
double alphaOf(const std::byte* block, unsigned element) {
  const Step step = stepOf(block, element, false);
  if (step.isLeast) return 0;
  if (step.isMost) return 1;
  constexpr int sevenths[] = {0, 36, 72, 111, 144, 183, 219}, fifths[] = {0, 48, 96, 159, 207};  // out of 255
  const int weight = step.steps == 7 ? sevenths[step.step] : step.steps == 5 ? fifths[step.step] : 0;
  return (step.from * (255 - weight) + step.to * weight + 127) / 255 / 255.0;
}

double explicitAlpha(const std::byte* block, unsigned element) {
  BlockBits bits(block);
  bits.skip(4 * element);
  return bits.take(4) / 15.0;
}

}  // namespace

std::array<double, 4> decodeElement(Coding coding, const std::byte* stored, unsigned x, unsigned y) {
  const unsigned element = 4 * y + x;
  std::array<std::byte, 24> block{};  // padded: blocks of 8 bytes are read like blocks of 16
  std::copy_n(stored, blockBytes(coding), block.begin());
  const std::byte* const first = block.data();
  const std::byte* const second = first + 8;
  switch (coding) {
    case Coding::bc1: return colourOf(first, element, true);
    case Coding::bc2:
    case Coding::bc3: {
      auto colour = colourOf(second, element, false);
      colour[3] = coding == Coding::bc2 ? explicitAlpha(first, element) : alphaOf(first, element);
      return colour;
    }
    case Coding::bc4:
    case Coding::bc4Signed: return {channelOf(first, element, coding == Coding::bc4Signed), 0, 0, 1};
    case Coding::bc5:
    case Coding::bc5Signed: {
      const bool isSigned = coding == Coding::bc5Signed;
      return {channelOf(first, element, isSigned), channelOf(second, element, isSigned), 0, 1};
    }
    case Coding::bc6:
    case Coding::bc6Signed: return decodeBc6(first, element, coding == Coding::bc6Signed);
    case Coding::bc7: return decodeBc7(first, element);
    case Coding::plain:
    case Coding::tenBits: break;
  }
  return {};
}

}  // namespace vgpu::emulator
