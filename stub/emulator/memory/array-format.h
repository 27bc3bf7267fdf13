// The formats of arrays, and how textures read them.
#pragma once

#include <cstdint>
#include <vector>

#include "stub/emulator/driver/cuda-api.h"
#include "stub/emulator/ptx/run/image-views.h"

namespace vgpu::emulator::api {

struct ArrayFormat {
  enum class Use : uint8_t {
    plain,       // with one, two or four channels; whole numbers may be read as such
    normalized,  // read as fractions, always
    srgb,        // the same, and only by a texture that converts
    packedVideo, // several channels of different meaning: not read by textures
    planes       // an array of each: no bytes of its own
  };
  CUarray_format format;
  Use use;
  ElementFormat::Kind kind;
  uint8_t channelBytes, channels;  // `channels` 0: one, two or four
  Coding coding = Coding::plain;

  bool isVideo() const { return use == Use::packedVideo || use == Use::planes; }
  bool allows(unsigned wanted) const { return channels != 0 ? wanted == channels : wanted == 1 || wanted == 2 || wanted == 4; }
  // How an element of so many channels lies in memory, for copies (ElementFormat::bytes) and textures.
  ElementFormat element(unsigned wanted) const;
};

// nullptr for a format that cuda.h does not have.
const ArrayFormat* findFormat(CUarray_format format);

// A plane of an array of several: its part of the width and height, in halves, and its elements.
struct PlaneFormat {
  uint8_t width, height, channels;
};
std::vector<PlaneFormat> planesOf(CUarray_format format);

}  // namespace vgpu::emulator::api
