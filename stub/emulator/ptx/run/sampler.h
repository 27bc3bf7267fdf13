// Reads a texture at a position: addressing, filtering, conversion.
//
// Coordinates and weights are fixed-point numbers as on the hardware (CUDA Programming Guide, "Texture Fetching": weights of 9 bits, 8 of
// them fraction). Where the guide leaves details open, this follows observations on an H200:
//   - a normalized coordinate is truncated to 21 bits of fraction, then scaled; for linear filtering a coordinate is rounded to 256ths of
//   an element;
//   - a corner's weight is the product of its axes' fractions: the product with most "far" sides is rounded to 256ths, and the others are
//   the remainders, so that weights add up to one;
//   - the sum is rounded once, ties away from zero: to a float, to a half if elements are halves, to 16 bits if they are integers read as
//   fractions;
//   - missing channels read as zero; a NaN coordinate is zero.
#pragma once

#include <array>
#include <cstddef>
#include <optional>

#include "stub/emulator/ptx/run/image-views.h"

namespace vgpu::emulator {

// The value of ElementReader::failed for an array without memory: not an address.
constexpr uint64_t noMemory = 16;

// Reads elements of one image. If a position is not mapped, `failed` is set to its address and zeros are read.
class ElementReader {
 public:
  virtual ~ElementReader() = default;
  virtual const std::byte* at(uint64_t address, uint32_t bytes) = 0;  // nullptr: not mapped
  std::optional<uint64_t> failed;
  bool resident = true;  // false once an unmapped position of a sparse array was read
};

struct Place {
  int axes = 1;  // 1 to 3
  bool layered = false, cube = false;
  bool whole = false;  // integer coordinates: elements, not filtered
  std::array<double, 3> at{};
  std::array<int, 3> offset{};  // in elements of the level that is read
  uint32_t layer = 0;
};

// The four channels in register form: floats, or integers extended by their signedness.
using Channels = std::array<uint32_t, 4>;

// Without a level the largest one within the image's limits is read; its bias applies only to given levels.
Channels sample(const ImageView&, ElementReader&, const Place&, std::optional<float> level = std::nullopt);
// Channel `component` of the four elements that linear filtering would use: lower left, lower right, upper right, upper left, in terms of
// increasing coordinates (PTX ISA, tld4).
Channels gather(const ImageView&, ElementReader&, const Place&, int component);
// The level for these derivatives of the coordinates (PTX ISA, tex.grad).
float levelOf(const ImageView&, const Place&, const std::array<float, 3>& dx, const std::array<float, 3>& dy);

}  // namespace vgpu::emulator
