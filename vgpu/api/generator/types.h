// The vendor's types, from vgpu/api/cuda.types: numbers, enumerations and the layouts of structures. tools/import_types.py says
// what the file has.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace vgpu::generator {

// What a field is in a frame: a number, or one of the Data lists.
enum class Type { boolean, u8, u16, u32, u64, i32, i64, f32, f64, place, bytes, text, structure, list, described };

// As the table, C++ and the schema spell it. Lists, and the vendor's structures, have names of their own.
struct TypeInfo {
  const char *name, *cpp, *schema;
  uint32_t bits;  // of a number
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
// The number that a type of C is; nothing if it is none.
std::optional<Type> numberOfC(const std::string& type);

struct Member {
  std::string type;    // as the header spells it: CUevent, unsigned char[4]
  std::string name;    // its path: res.array.hArray
  uint32_t offset = 0;  // bytes
  uint32_t bytes = 0;
};

struct VendorType {
  enum Class { number, pointer, enumeration, structure } what = number;
  std::string name;    // its first one, if it has several
  uint32_t bytes = 0;
  std::map<std::string, int64_t> values;  // of an enumeration
  std::vector<Member> members;            // of a structure, in the order of the header
};

class VendorTypes {
 public:
  // Throws kj::Exception naming the line that makes no sense.
  explicit VendorTypes(const std::string& path);

  // By any of its names; nullptr if there is none.
  const VendorType* find(const std::string& name) const;
  const VendorType* findStructure(const std::string& name) const;
  // Of a type as the header spells it, pointers and arrays included. Throws kj::Exception on one that is not known.
  uint32_t bytesOf(const std::string& spelled) const;
  // The members, and those of structures among them by their path, a structure itself before its own.
  std::vector<Member> flatMembers(const VendorType& structure) const;

 private:
  std::map<std::string, VendorType> types;
  std::map<std::string, std::string> others;  // name to first name
};

}  // namespace vgpu::generator
