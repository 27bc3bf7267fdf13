// A tensor map: 128 bytes that describe a tensor in global memory and the box that one copy takes of it.
//
// The layout is private to the emulated device. Programs make and change maps only through driver entries and tensormap.replace, and pass
// them to tensor instructions; a map in a snapshot or in a kernel's parameters is not valid for a real driver, nor the reverse.
#pragma once

#include <cstdint>

namespace vgpu::emulator {

constexpr uint32_t mostTensorDimensions = 5;

struct TensorMap {
  static constexpr uint32_t marked = 0x70616d74;  // "tmap": distinguishes a tensor map from other data

  enum class Mode : uint8_t { tiled, imageToColumn };
  uint32_t mark = 0;
  uint8_t type = 0;     // CUtensorMapDataType
  uint8_t rank = 0;     // dimensions; 0 is the innermost
  uint8_t swizzle = 0;  // CUtensorMapSwizzle
  bool fillsNan = false;
  Mode mode = Mode::tiled;
  uint8_t interleave = 0;                    // CUtensorMapInterleave
  uint8_t promotion = 0;                     // as given
  uint8_t steps[mostTensorDimensions] = {};  // from one copied element to the next; always 1 for dimension 0, unless interleaved
  uint64_t address = 0;
  uint32_t lastIndex[mostTensorDimensions] = {};  // extents minus one
  uint16_t box[mostTensorDimensions] = {};        // elements that a copy spans; for imageToColumn channels, then pixels
  int16_t lower[3] = {}, upper[3] = {};           // for imageToColumn: corners of the box of pixels
  uint8_t padding[6] = {};
  uint64_t strides[mostTensorDimensions - 1] = {};  // in bytes, for dimensions 1 and up
  uint8_t reserved[24] = {};
};
static_assert(sizeof(TensorMap) == 128);

// An element type, by its number in CUtensorMapDataType.
struct TensorElement {
  uint8_t bytes;
  bool isFloat, flushes;
  const char* name;  // in the names of reductions
};
constexpr uint8_t tensorTf32 = 11, tensorTf32Flushed = 12;
constexpr TensorElement tensorElements[] = {{1, false, false, "u8"},  {2, false, false, "u16"}, {4, false, false, "u32"},
                                            {4, false, false, "s32"}, {8, false, false, "u64"}, {8, false, false, "s64"},
                                            {2, true, false, "f16"},  {4, true, false, "f32"},  {8, true, false, "f64"},
                                            {2, true, false, "bf16"}, {4, true, true, "f32"},   {4, true, false, "f32"},
                                            {4, true, true, "f32"}};

// Bytes of a unit, by CUtensorMapInterleave; 0: no units. An interleaved tensor's elements are units of channels, adjacent along dimension
// 0; the last dimension but one counts slices of channels, of which a copy takes one.
constexpr uint32_t interleavedUnits[] = {0, 16, 32};

// Bytes within which 16-byte units are exchanged, by CUtensorMapSwizzle; 0: not swizzled.
constexpr uint32_t swizzleSpans[] = {0, 32, 64, 128};
// The place in shared memory of what belongs at `address`: the swizzle exchanges the units of a row according to the row's number in the
// pattern.
inline uint64_t swizzled(uint64_t address, uint32_t span) {
  return span == 0 ? address : address ^ ((address >> 7 & (span / 16 - 1)) << 4);
}

}  // namespace vgpu::emulator
