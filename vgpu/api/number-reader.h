// Reads fields of any method's frame, by the offsets in the table of effects.
#pragma once

#include <algorithm>

#include "vgpu/api/effects.h"
#include "vgpu/api/flat-frame.h"

namespace vgpu::api {

// Like FlatReader: the frame is checked, and a missing field reads as 0.
class NumberReader : public FlatReader {
 public:
  using FlatReader::FlatReader;
  kj::ArrayPtr<const kj::byte> list(uint32_t pointer) const { return readData(pointer); }
  uint64_t read(NumberField field) const { return field.bytes == 8 ? get<uint64_t>(field.offset) : get<uint32_t>(field.offset); }
  // The product of the first number and each further number that is not 0; UINT64_MAX on overflow, 0 for an empty list.
  uint64_t product(std::span<const NumberField> factors) const {
    uint64_t product = factors.empty() ? 0 : read(factors.front());
    for (size_t i = 1; i < factors.size(); ++i)
      if (__builtin_mul_overflow(product, std::max<uint64_t>(read(factors[i]), 1), &product)) product = UINT64_MAX;
    return product;
  }
};

}  // namespace vgpu::api
