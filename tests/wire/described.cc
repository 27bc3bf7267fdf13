// Data lists of described elements, as a program could send them.
#include <doctest/doctest.h>

#include <cstring>
#include <string>
#include <vector>

#include "vgpu/api/described.h"

using namespace vgpu;
using namespace vgpu::api;

namespace {

// { handle stream; u32 kind; u32 count; u64* numbers; char* name }: numbers are there if the kind is 1 or 3.
constexpr Described number{8, {}};
constexpr Condition ofNumbers[] = {{8, 1 << 1 | 1 << 3}};
constexpr DescribedField fields[] = {
    {.what = FieldClass::handle, .offset = 0, .kind = Kind::STREAM, .nullable = true},
    {.what = FieldClass::list, .offset = 16, .element = &number, .countOffset = 12, .countBytes = 4, .conditions = ofNumbers},
    {.what = FieldClass::text, .offset = 24, .nullable = true}};
constexpr Described structure{32, fields};

struct Structure {
  uint64_t stream = 7;
  uint32_t kind = 1, count = 0;
  uint64_t numbers = 0, name = 0;  // bytes
};

std::vector<kj::byte> bytesOf(const Structure& first, std::initializer_list<uint64_t> rest = {}) {
  std::vector<kj::byte> bytes(sizeof first + 8 * rest.size());
  std::memcpy(bytes.data(), &first, sizeof first);
  size_t at = sizeof first;
  for (uint64_t word : rest) std::memcpy(bytes.data() + at, &word, 8), at += 8;
  return bytes;
}

// What is found, in order: the class's letter and the size of what a pointer points to.
std::string found(const Described& element, const std::vector<kj::byte>& bytes) {
  std::string text;
  walkDescribed(element, kj::arrayPtr(bytes.data(), bytes.size()),
                [&](const DescribedField& field, const kj::byte*, kj::ArrayPtr<const kj::byte> part) {
                  text += "phrcmlt"[static_cast<size_t>(field.what)] + std::to_string(part.size()) + " ";
                });
  return text;
}

}  // namespace

TEST_CASE("a structure's lists and texts are found behind it, in the order of its fields") {
  Structure first{.count = 2, .numbers = 16, .name = 3};
  auto bytes = bytesOf(first, {11, 12, 0x006f6e});  // "no"
  bytes.resize(32 + 16 + 3);
  CHECK(found(structure, bytes) == "h0 l16 t3 ");
}

TEST_CASE("a list that the structure's kind does not have is a number like any other") {
  CHECK(found(structure, bytesOf({.kind = 2, .count = 9, .numbers = 72})) == "h0 t0 ");
  CHECK(found(structure, bytesOf({.kind = 66, .count = 9, .numbers = 72})) == "h0 t0 ");
}

TEST_CASE("structures without pointers are as many as there is room for") {
  static constexpr DescribedField handle[] = {{.what = FieldClass::handle, .offset = 0, .kind = Kind::EVENT}};
  static constexpr Described event{8, handle};
  CHECK(found(event, std::vector<kj::byte>(24)) == "h0 h0 h0 ");
  CHECK(found(event, {}).empty());
  CHECK_THROWS(found(event, std::vector<kj::byte>(12)));
}

TEST_CASE("a list that is not what its structure says is refused") {
  CHECK_THROWS(found(structure, bytesOf({.count = 1, .numbers = 8})));            // ends before its list
  CHECK_THROWS(found(structure, bytesOf({.count = 1, .numbers = 16}, {1, 2})));   // other sizes
  CHECK_THROWS(found(structure, bytesOf({.count = 1, .numbers = 8}, {1, 2})));    // something is left
  CHECK_THROWS(found(structure, bytesOf({.name = 8}, {~0ull})));                  // text without an end
  CHECK_THROWS(found(structure, bytesOf({.count = 1, .numbers = ~0ull}, {1})));
  CHECK_THROWS(found(structure, bytesOf({.count = 0x20000001, .numbers = 8}, {1})));
  CHECK_THROWS(found(structure, std::vector<kj::byte>(16)));                      // ends within the structure
}
