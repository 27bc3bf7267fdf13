// Structures of the vendor's header, handles and numbers in a Data list of a frame: what their fields are, for those that write
// one (intercept/session/packed.h), check it and give it to the driver (stub/worker/unpacked.h), or look for the objects that it
// names (effects.h). The generator writes the descriptions (cuda-described.h): layouts from vgpu/api/cuda.types, what a layout
// cannot say from the `struct` lines of vgpu/api/cuda.table.
//
// A Data list has its elements as the header lays them out. A handle is the virtual one.
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
  choice,  // a number of 32 bits that is one of some values
  memory,  // an address at which bytes are the session's
};

// A field is there only if the number of 32 bits at `offset` has one of these values, of which each is a bit.
struct Condition {
  uint32_t offset;
  uint64_t values;
};

struct DescribedField {
  FieldClass what;
  uint32_t offset;         // in the structure
  uint32_t bytes = 0;      // of the session's memory
  Kind kind = Kind::NONE;  // of a handle
  bool nullable = false;   // a handle
  uint64_t values = 0;     // of a choice: a bit each
  std::span<const Condition> conditions = {};
};

// An element of a list.
struct Described {
  uint32_t bytes;
  std::span<const DescribedField> fields;
};

// A number of a structure that need not be aligned.
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

// Calls `visit(field, structure)` for every field that is there, in order: `structure` is the beginning of the element with the
// field. Byte: kj::byte, or const kj::byte. Throws kj::Exception on a list that ends within an element.
template <typename Byte, typename Visit>
void walkDescribed(const Described& element, kj::ArrayPtr<Byte> data, Visit&& visit) {
  KJ_REQUIRE(data.size() % element.bytes == 0, "a list that ends within an element", data.size(), element.bytes);
  for (Byte* structure = data.begin(); structure != data.end(); structure += element.bytes)
    for (auto& field : element.fields)
      if (isThere(field, structure)) visit(field, structure);
}

}  // namespace vgpu::api
