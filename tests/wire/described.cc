// Data lists of described elements, as a hostile program could send them.
#include <doctest/doctest.h>

#include <cstring>
#include <string>
#include <vector>

#include "vgpu/api/described.h"

using namespace vgpu;
using namespace vgpu::api;

namespace {

// { handle stream; u32 kind; u32 choice; u64 address }: the address is valid if the kind is 1 or 3.
constexpr Condition ofAddress[] = {{8, 1 << 1 | 1 << 3}};
constexpr DescribedField fields[] = {{.what = FieldClass::handle, .offset = 0, .kind = Kind::STREAM, .nullable = true},
                                     {.what = FieldClass::choice, .offset = 12, .values = 1},
                                     {.what = FieldClass::memory, .offset = 16, .bytes = 4, .conditions = ofAddress}};
constexpr Described structure{24, fields};

struct Structure {
  uint64_t stream = 7;
  uint32_t kind = 1, choice = 0;
  uint64_t address = 0;
};

std::vector<kj::byte> bytesOf(std::initializer_list<Structure> all) {
  std::vector<kj::byte> bytes(all.size() * sizeof(Structure));
  std::memcpy(bytes.data(), all.begin(), bytes.size());
  return bytes;
}

// One letter per field's class, in the order in which fields are found.
std::string found(const Described& element, const std::vector<kj::byte>& bytes) {
  std::string text;
  walkDescribed(element, kj::arrayPtr(bytes.data(), bytes.size()),
                [&](const DescribedField& field, const kj::byte*) { text += "hcm"[static_cast<size_t>(field.what)]; });
  return text;
}

}  // namespace

TEST_CASE("a structure's fields are found in order") { CHECK(found(structure, bytesOf({{}})) == "hcm"); }

TEST_CASE("a field that the structure's kind does not use is treated as a plain number") {
  CHECK(found(structure, bytesOf({{.kind = 2}, {.kind = 3}})) == "hchcm");
  CHECK(found(structure, bytesOf({{.kind = 66}})) == "hc");
}

TEST_CASE("only whole elements are counted, as many as fit") {
  static constexpr DescribedField handle[] = {{.what = FieldClass::handle, .offset = 0, .kind = Kind::EVENT}};
  static constexpr Described event{8, handle};
  CHECK(found(event, std::vector<kj::byte>(24)) == "hhh");
  CHECK(found(event, {}).empty());
  CHECK_THROWS(found(event, std::vector<kj::byte>(12)));
  CHECK_THROWS(found(structure, std::vector<kj::byte>(16)));
}
