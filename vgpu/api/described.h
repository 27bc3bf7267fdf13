// Structures of the vendor's header, handles and numbers in a Data list of a frame: what their fields are, for those that write one
// (intercept/session/packed.h), check it and give it to the driver (stub/worker/unpacked.h), or look for the objects that it names
// (effects.h). The generator writes the descriptions (cuda-described.h): layouts from vgpu/api/cuda.types, what a layout cannot say
// from the `struct` lines of vgpu/api/cuda.table.
//
// A Data list has its elements as the header lays them out, then what they point to, each part at the next multiple of 8 bytes, in
// the order of the elements and their fields, the parts of a part right behind it. A handle is the virtual one. A pointer is the
// number of bytes of the part that it points to, 0 if it is null. So there is no offset that could be wrong: the walk below finds
// every part by counting, and refuses a list in which bytes are too few or left over.
#pragma once

#include <kj/array.h>
#include <kj/debug.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>

#include "cuda-kinds.h"

namespace vgpu::api {

struct Described;

enum class FieldClass : uint8_t {
  parameters,  // of a kernel: the program's array of pointers, for the driver one block
  handle,
  reserved,  // zero
  choice,    // a number of 32 bits that is one of some values
  memory,    // an address at which bytes are the session's
  list,      // a pointer to elements
  text,      // a pointer to characters with a zero byte behind them
};

// A field is there only if the number of 32 bits at `offset` has one of these values, of which each is a bit.
struct Condition {
  uint32_t offset;
  uint64_t values;
};

struct DescribedField {
  FieldClass what;
  uint32_t offset;              // in the structure
  uint32_t bytes = 0;           // of what is reserved; of the session's memory
  Kind kind = Kind::NONE;       // of a handle
  bool nullable = false;        // a handle, or a pointer to more than no elements
  const Described* element = nullptr;             // of a list
  uint32_t countOffset = 0, countBytes = 0;       // of a list: where the structure has its length
  uint32_t functionOffset = 0, extraOffset = 0;   // of parameters: the kernel's handle; the block that may be instead
  uint64_t values = 0;                            // of a choice: a bit each
  std::span<const Condition> conditions = {};

  bool isPointer() const { return what == FieldClass::parameters || what >= FieldClass::list; }
};

// An element of a list.
struct Described {
  uint32_t bytes;
  std::span<const DescribedField> fields;

  bool pointsFurther() const { return std::ranges::any_of(fields, &DescribedField::isPointer); }
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
inline uint64_t countOf(const DescribedField& list, const kj::byte* structure) {
  return list.countBytes == 8 ? numberAt<uint64_t>(structure, list.countOffset) : numberAt<uint32_t>(structure, list.countOffset);
}
constexpr size_t aligned(size_t bytes) { return (bytes + 7) / 8 * 8; }

// Every field that is there, in the order of the list's parts. Byte: kj::byte, or const kj::byte.
template <typename Byte, typename Visit>
class DescribedWalk {
 public:
  // Calls `visit(field, structure, part)` for each: `structure` is the beginning of the one with the field, `part` what a pointer
  // points to. Throws kj::Exception on a list that is none of such elements.
  DescribedWalk(const Described& element, kj::ArrayPtr<Byte> data, Visit visit) : data(data), visit(visit) {
    if (data.size() == 0) return;
    size_t count = element.pointsFurther() ? 1 : data.size() / element.bytes;
    walk(element, take(count * element.bytes), count);
    KJ_REQUIRE(next == data.size(), "a list with more bytes than its elements have", data.size(), next);
  }

 private:
  kj::ArrayPtr<Byte> take(uint64_t bytes) {
    size_t begin = aligned(next);
    KJ_REQUIRE(begin <= data.size() && bytes <= data.size() - begin, "a list that ends within an element", data.size(), bytes);
    next = begin + bytes;
    return data.slice(begin, next);
  }

  void walk(const Described& element, kj::ArrayPtr<Byte> elements, size_t count) {
    for (size_t i = 0; i < count; ++i) {
      Byte* structure = elements.begin() + i * element.bytes;
      for (auto& field : element.fields)
        if (isThere(field, structure)) visitField(field, structure);
    }
  }

  void visitField(const DescribedField& field, Byte* structure) {
    if (!field.isPointer()) return visit(field, structure, kj::ArrayPtr<Byte>());
    uint64_t bytes = numberAt<uint64_t>(structure, field.offset), count = 0, needed = bytes;
    if (bytes == 0) return visit(field, structure, kj::ArrayPtr<Byte>());
    kj::ArrayPtr<Byte> part = take(bytes);
    if (field.what == FieldClass::list) {
      count = countOf(field, structure);
      bool isTooLong = __builtin_mul_overflow(count, uint64_t{field.element->bytes}, &needed);
      KJ_REQUIRE(!isTooLong && needed == bytes, "a list of another length than its structure says", bytes, count);
    }
    KJ_REQUIRE(field.what != FieldClass::text || part.back() == 0, "text does not end with a zero byte");
    visit(field, structure, part);
    if (count != 0) walk(*field.element, part, count);
  }

  kj::ArrayPtr<Byte> data;
  Visit visit;
  size_t next = 0;
};

template <typename Byte, typename Visit>
void walkDescribed(const Described& element, kj::ArrayPtr<Byte> data, Visit&& visit) {
  DescribedWalk<Byte, Visit&>(element, data, visit);
}

}  // namespace vgpu::api
