// A tensor map: the 128 bytes that say where a tensor lies in global memory and which box of it one copy takes.
//
// The layout is the emulated device's own. Programs make and change a map through the driver's entries and tensormap.replace, and
// hand it to tensor instructions; what lies in a snapshot or a kernel's parameters means nothing to a real driver, nor does its
// to us.
#pragma once

#include <cstdint>

namespace vgpu::emulator {

constexpr uint32_t mostTensorDimensions = 5;

struct TensorMap {
  static constexpr uint32_t marked = 0x70616d74;  // "tmap": what else lies somewhere is no tensor map

  enum class Mode : uint8_t { tiled, imageToColumn };
  uint32_t mark = 0;
  uint8_t type = 0;     // CUtensorMapDataType
  uint8_t rank = 0;     // dimensions; 0 is the innermost
  uint8_t swizzle = 0;  // CUtensorMapSwizzle
  bool fillsNan = false;
  Mode mode = Mode::tiled;
  uint8_t interleave = 0;                    // CUtensorMapInterleave
  uint8_t promotion = 0;                     // as given
  uint8_t steps[mostTensorDimensions] = {};  // from one element to the next that is taken; of dimension 0 always one, if not interleaved
  uint64_t address = 0;
  uint32_t lastIndex[mostTensorDimensions] = {};  // extents, less one
  uint16_t box[mostTensorDimensions] = {};        // elements that a copy spans; of imageToColumn channels, then pixels
  int16_t lower[3] = {}, upper[3] = {};           // of imageToColumn: corners of the box that pixels are taken from
  uint8_t padding[6] = {};
  uint64_t strides[mostTensorDimensions - 1] = {};  // bytes, of dimensions 1 and up
  uint8_t reserved[24] = {};
};
static_assert(sizeof(TensorMap) == 128);

// An element type, by its number in CUtensorMapDataType.
struct TensorElement {
  uint8_t bytes;
  bool isFloat, flushes;
  const char* name;  // as reductions know it
};
constexpr uint8_t tensorTf32 = 11, tensorTf32Flushed = 12;
constexpr TensorElement tensorElements[] = {{1, false, false, "u8"},  {2, false, false, "u16"}, {4, false, false, "u32"},
                                            {4, false, false, "s32"}, {8, false, false, "u64"}, {8, false, false, "s64"},
                                            {2, true, false, "f16"},  {4, true, false, "f32"},  {8, true, false, "f64"},
                                            {2, true, false, "bf16"}, {4, true, true, "f32"},   {4, true, false, "f32"},
                                            {4, true, true, "f32"}};

// Bytes of a unit, by CUtensorMapInterleave; 0: the layout is none of units. An interleaved tensor's elements are units of channels, which
// lie side by side along dimension 0; its last dimension but one are the slices of channels, of which a copy takes one.
constexpr uint32_t interleavedUnits[] = {0, 16, 32};

// Bytes within which 16-byte units are exchanged, by CUtensorMapSwizzle; 0: not at all.
constexpr uint32_t swizzleSpans[] = {0, 32, 64, 128};
// Where the swizzle puts what belongs at `address` of shared memory: units of a row change places by the row's number in the
// pattern.
inline uint64_t swizzled(uint64_t address, uint32_t span) {
  return span == 0 ? address : address ^ ((address >> 7 & (span / 16 - 1)) << 4);
}

}  // namespace vgpu::emulator
