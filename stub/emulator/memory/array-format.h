// The formats of arrays, and how textures read them.
#pragma once

#include <cstdint>
#include <vector>

#include "stub/emulator/driver/cuda-api.h"
#include "stub/emulator/ptx/run/image-views.h"

namespace vgpu::emulator::api {

struct ArrayFormat {
  enum class Use : uint8_t {
    plain,       // one, two or four channels; integers may be read as fractions
    normalized,  // integers always read as fractions
    srgb,        // the same, and only by a texture with sRGB conversion
    packedVideo, // several channels with different meanings: not read by textures
    planes       // several arrays, one for each plane: no bytes of its own
  };
  CUarray_format format;
  Use use;
  ElementFormat::Kind kind;
  uint8_t channelBytes, channels;  // `channels` 0: one, two or four
  Coding coding = Coding::plain;

  bool isVideo() const { return use == Use::packedVideo || use == Use::planes; }
  bool allows(unsigned wanted) const { return channels != 0 ? wanted == channels : wanted == 1 || wanted == 2 || wanted == 4; }
  // The layout of an element with so many channels in memory, for copies (ElementFormat::bytes) and textures.
  ElementFormat element(unsigned wanted) const;
};

// nullptr for a format that cuda.h does not have.
const ArrayFormat* findFormat(CUarray_format format);

// One plane of a multi-planar array: its share of the width and height, in halves, and its elements.
struct PlaneFormat {
  uint8_t width, height, channels;
};
std::vector<PlaneFormat> planesOf(CUarray_format format);

}  // namespace vgpu::emulator::api
