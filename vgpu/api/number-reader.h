// Reads the fields of any method's frame that the table of effects names by their places.
#pragma once

#include <algorithm>

#include "vgpu/api/effects.h"
#include "vgpu/api/flat-frame.h"

namespace vgpu::api {

// As FlatReader: the frame is checked, and a field that it lacks is 0.
class NumberReader : public FlatReader {
 public:
  using FlatReader::FlatReader;
  kj::ArrayPtr<const kj::byte> list(uint32_t pointer) const { return readData(pointer); }
  uint64_t read(NumberField field) const { return field.bytes == 8 ? get<uint64_t>(field.offset) : get<uint32_t>(field.offset); }
  // The first number, times each other one that is not 0: UINT64_MAX if that is more, 0 of none.
  uint64_t product(std::span<const NumberField> factors) const {
    uint64_t product = factors.empty() ? 0 : read(factors.front());
    for (size_t i = 1; i < factors.size(); ++i)
      if (__builtin_mul_overflow(product, std::max<uint64_t>(read(factors[i]), 1), &product)) product = UINT64_MAX;
    return product;
  }
};

}  // namespace vgpu::api
