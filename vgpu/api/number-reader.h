// Reads the fields of any method's frame that the table of effects names by their places.
#pragma once

#include "vgpu/api/effects.h"
#include "vgpu/api/flat-frame.h"

namespace vgpu::api {

// As FlatReader: the frame is checked, and a field that it lacks is 0.
class NumberReader : public FlatReader {
 public:
  using FlatReader::FlatReader;
  kj::ArrayPtr<const kj::byte> list(uint32_t pointer) const { return readData(pointer); }
  uint64_t read(NumberField field) const { return field.bytes == 8 ? get<uint64_t>(field.offset) : get<uint32_t>(field.offset); }
};

}  // namespace vgpu::api
