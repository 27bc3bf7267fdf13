// The vendor's types, from vgpu/api/cuda.types: numbers, enumerations and the layouts of structures. tools/import_types.py says
// what the file has.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace vgpu::generator {

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
  // Of a type as the header spells it, pointers and arrays included. Throws kj::Exception on one that is not known.
  uint32_t bytesOf(const std::string& spelled) const;
  // The members, and those of structures among them by their path, a structure itself before its own.
  std::vector<Member> flatMembers(const VendorType& structure) const;

 private:
  std::map<std::string, VendorType> types;
  std::map<std::string, std::string> others;  // name to first name
};

}  // namespace vgpu::generator
