// Structures of the vendor's header, handles and numbers in a Data list of a frame: descriptions of their fields, for code that writes a
// list (intercept/session/packed.h), checks it and passes it to the driver (stub/worker/unpacked.h), or looks for the objects that it names
// (effects.h). The generator writes the descriptions (cuda-described.h): layouts from vgpu/api/cuda.types, and what a layout does not say
// from the `struct` lines of vgpu/api/cuda.table.
//
// The elements of a Data list are laid out as in the header. Handles in it are virtual.
#pragma once

#include <kj/array.h>
#include <kj/debug.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>

#include "cuda-kinds.h"

namespace vgpu::api {

enum class FieldClass : uint8_t {
  handle,
  choice,  // a 32-bit number that must be one of certain values
  memory,  // an address at which `bytes` bytes must belong to the session
};

// A field is present only if the 32-bit number at `offset` has one of these values; each value is a bit.
struct Condition {
  uint32_t offset;
  uint64_t values;
};

struct DescribedField {
  FieldClass what;
  uint32_t offset;         // in the structure
  uint32_t bytes = 0;      // for `memory`
  Kind kind = Kind::NONE;  // for a handle
  bool nullable = false;   // for a handle
  uint64_t values = 0;     // for a choice: one bit per value
  std::span<const Condition> conditions = {};
};

// An element of a list.
struct Described {
  uint32_t bytes;
  std::span<const DescribedField> fields;
};

// Reads a number of a structure, which may be unaligned.
template <typename Number>
Number numberAt(const kj::byte* structure, uint32_t offset) {
  Number value;
  std::memcpy(&value, structure + offset, sizeof value);
  return value;
}
template <typename Number>
void putNumber(kj::byte* structure, uint32_t offset, Number value) {
  std::memcpy(structure + offset, &value, sizeof value);
}

inline bool hasOneOf(uint64_t values, const kj::byte* structure, uint32_t offset) {
  uint32_t value = numberAt<uint32_t>(structure, offset);
  return value < 64 && (values >> value & 1) != 0;
}
inline bool isThere(const DescribedField& field, const kj::byte* structure) {
  return std::ranges::all_of(field.conditions,
                             [&](const Condition& condition) { return hasOneOf(condition.values, structure, condition.offset); });
}

// Calls `visit(field, structure)` for every field that is present, in order; `structure` is the beginning of the element that has the
// field. Byte: kj::byte, or const kj::byte. Throws kj::Exception if the list ends within an element.
template <typename Byte, typename Visit>
void walkDescribed(const Described& element, kj::ArrayPtr<Byte> data, Visit&& visit) {
  KJ_REQUIRE(data.size() % element.bytes == 0, "a list that ends within an element", data.size(), element.bytes);
  for (Byte* structure = data.begin(); structure != data.end(); structure += element.bytes)
    for (auto& field : element.fields)
      if (isThere(field, structure)) visit(field, structure);
}

}  // namespace vgpu::api
