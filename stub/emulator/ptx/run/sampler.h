// How a texture is read at a place: addressing, filtering, conversion.
//
// Coordinates and weights are fixed-point numbers as the hardware has them (CUDA Programming Guide, "Texture
// Fetching": weights of 9 bits, 8 of them of fraction). What the guide leaves open is as an H200 was seen to do it:
//   - a normalized coordinate is cut to 21 bits of fraction, then scaled; a coordinate is rounded to 256ths of an
//     element for linear filtering;
//   - a corner's weight is the product of its axes' fractions, the product that has most "far" sides rounded to 256ths
//     and the others what is left, so that weights sum to one;
//   - the sum is rounded once, halves away from zero: to a float, to a half where elements are halves, to 16 bits where
//     they are fractions of whole numbers;
//   - channels that a format lacks read as zero; a coordinate that is no number is zero.
#pragma once

#include <array>
#include <cstddef>
#include <optional>

#include "stub/emulator/ptx/run/image-views.h"

namespace vgpu::emulator {

// What ElementReader::failed is for an array that has been given no memory: no address.
constexpr uint64_t noMemory = 16;

// Reads elements of one image. If a place is not mapped, `failed` is set with it and zeros are read.
class ElementReader {
 public:
  virtual ~ElementReader() = default;
  virtual const std::byte* at(uint64_t address, uint32_t bytes) = 0;  // nullptr: not mapped
  std::optional<uint64_t> failed;
  bool resident = true;  // false once a place of a sparse array without memory was read
};

struct Place {
  int axes = 1;  // 1 to 3
  bool layered = false, cube = false;
  bool whole = false;  // the coordinates are whole numbers: elements, not filtered
  std::array<double, 3> at{};
  std::array<int, 3> offset{};  // elements, of the level that is read
  uint32_t layer = 0;
};

// The four channels as registers hold them: floats, or whole numbers extended by their signedness.
using Channels = std::array<uint32_t, 4>;

// Without a level the largest is read, as far as the image's limits allow; its bias is for levels that are asked for.
Channels sample(const ImageView&, ElementReader&, const Place&, std::optional<float> level = std::nullopt);
// Channel `component` of the four elements that linear filtering would use: left below, right below, right above, left
// above, by rising coordinates (PTX ISA, tld4).
Channels gather(const ImageView&, ElementReader&, const Place&, int component);
// The level for these derivatives of the coordinates (PTX ISA, tex.grad).
float levelOf(const ImageView&, const Place&, const std::array<float, 3>& dx, const std::array<float, 3>& dy);

}  // namespace vgpu::emulator
