// The vendor's types, from vgpu/api/cuda.types: numbers, enumerations and the layouts of structures. tools/import_types.py describes the
// file.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace vgpu::generator {

// What a field is in a frame: a number, or one of the Data lists.
enum class Type { boolean, u8, u16, u32, u64, i32, i64, f32, f64, place, bytes, text, structure, list, described };

// The spelling in the table, in C++ and in the schema. Lists, and the vendor's structures, have names of their own.
struct TypeInfo {
  const char *name, *cpp, *schema;
  uint32_t bits;  // for a number
};
constexpr TypeInfo typeInfos[] = {{"bool", "bool", "Bool", 1},
                                  {"u8", "uint8_t", "UInt8", 8},
                                  {"u16", "uint16_t", "UInt16", 16},
                                  {"u32", "uint32_t", "UInt32", 32},
                                  {"u64", "uint64_t", "UInt64", 64},
                                  {"i32", "int32_t", "Int32", 32},
                                  {"i64", "int64_t", "Int64", 64},
                                  {"f32", "float", "Float32", 32},
                                  {"f64", "double", "Float64", 64},
                                  {"place", "uint64_t", "UInt64", 64},
                                  {"bytes", "", "Data", 0},
                                  {"text", "", "Data", 0},
                                  {"struct", "", "Data", 0},
                                  {"", "", "Data", 0},
                                  {"", "", "Data", 0}};
constexpr const TypeInfo& infoOf(Type type) { return typeInfos[static_cast<size_t>(type)]; }
// The Type of a C number type; nothing for another C type.
std::optional<Type> numberOfC(const std::string& type);

struct Member {
  std::string type;    // as the header spells it: CUevent, unsigned char[4]
  std::string name;    // its path: res.array.hArray
  uint32_t offset = 0;  // bytes
  uint32_t bytes = 0;
};

struct VendorType {
  enum Class { number, pointer, enumeration, structure } what = number;
  std::string name;    // its first name, if it has several
  uint32_t bytes = 0;
  std::map<std::string, int64_t> values;  // for an enumeration
  std::vector<Member> members;            // for a structure, in the header's order
};

class VendorTypes {
 public:
  // Throws kj::Exception that names the invalid line.
  explicit VendorTypes(const std::string& path);

  // Finds a type by any of its names; nullptr if there is none.
  const VendorType* find(const std::string& name) const;
  const VendorType* findStructure(const std::string& name) const;
  // The size of a type as the header spells it, including pointers and arrays. Throws kj::Exception for an unknown type.
  uint32_t bytesOf(const std::string& spelled) const;
  // All members, including those of nested structures by their path; a nested structure comes before its own members.
  std::vector<Member> flatMembers(const VendorType& structure) const;

 private:
  std::map<std::string, VendorType> types;
  std::map<std::string, std::string> others;  // a further name to the first name
};

}  // namespace vgpu::generator
