#include "types.h"

#include <kj/debug.h>

#include <fstream>
#include <utility>

#include "text.h"

namespace vgpu::generator {

namespace {

constexpr std::pair<const char*, uint32_t> plainTypes[] = {
    {"char", 1},      {"unsigned char", 1}, {"short", 2},          {"unsigned short", 2},     {"int", 4},
    {"unsigned int", 4}, {"float", 4},      {"long", 8},           {"long long", 8},          {"unsigned long long", 8},
    {"size_t", 8},    {"double", 8},        {"unsigned long", 8}};

// `CUarray res.array.hArray @8`.
Member readMember(const std::string& text) {
  size_t at = text.rfind(" @");
  KJ_REQUIRE(at != std::string::npos, "a member has its offset", text.c_str());
  Parameter parameter = readParameter(text.substr(0, at));
  return {parameter.type, parameter.name, static_cast<uint32_t>(std::stoul(text.substr(at + 2))), 0};
}

}  // namespace

VendorTypes::VendorTypes(const std::string& path) {
  std::ifstream file(path);
  KJ_REQUIRE(file.good(), "cannot read the types", path.c_str());
  for (TableText lines(file); lines.next();) {
    KJ_CONTEXT("the types' line", lines.number);
    auto all = words(lines.head);
    KJ_REQUIRE(all.size() >= 2, "a type has a name", lines.head.c_str());
    if (all[0] == "same") {
      others[all[1]] = all.at(2);
      continue;
    }
    VendorType type{.name = all[1]};
    if (all[0] == "number") {
      type.bytes = static_cast<uint32_t>(std::stoul(all.at(2)));
    } else if (all[0] == "pointer") {
      type.what = VendorType::pointer;
      type.bytes = 8;
    } else if (all[0] == "enum") {
      type.what = VendorType::enumeration;
      type.bytes = 4;
      for (auto& value : split(parenthesised(lines.head, lines.head.find('(')), ','))
        type.values[words(value).at(0)] = std::stoll(words(value).at(1));
    } else {
      KJ_REQUIRE(all[0] == "structure", "a type is number, pointer, enum, structure or same", all[0].c_str());
      type.what = VendorType::structure;
      type.bytes = static_cast<uint32_t>(std::stoul(all.at(2)));
      for (auto& member : split(parenthesised(lines.head, lines.head.find('(')), ',')) type.members.push_back(readMember(member));
    }
    KJ_REQUIRE(types.emplace(type.name, type).second, "a type is there twice", type.name.c_str());
  }
}

const VendorType* VendorTypes::find(const std::string& name) const {
  auto known = types.find(name);
  if (known != types.end()) return &known->second;
  auto other = others.find(name);
  return other != others.end() ? find(other->second) : nullptr;
}

uint32_t VendorTypes::bytesOf(const std::string& spelled) const {
  if (size_t bracket = spelled.find('['); bracket != std::string::npos)
    return static_cast<uint32_t>(std::stoul(spelled.substr(bracket + 1))) * bytesOf(spelled.substr(0, bracket));
  if (spelled.back() == '*' || spelled.ends_with("*const")) return 8;
  for (auto& [name, bytes] : plainTypes)
    if (spelled == name) return bytes;
  const VendorType* type = find(spelled);
  KJ_REQUIRE(type != nullptr, "a type that the generator does not know", spelled.c_str());
  return type->bytes;
}

std::vector<Member> VendorTypes::flatMembers(const VendorType& structure) const {
  std::vector<Member> flat;
  for (Member member : structure.members) {
    member.bytes = bytesOf(member.type);
    flat.push_back(member);
    const VendorType* inner = find(member.type);
    if (inner == nullptr || inner->what != VendorType::structure) continue;
    for (Member& part : flatMembers(*inner))
      flat.push_back({part.type, member.name + "." + part.name, member.offset + part.offset, part.bytes});
  }
  return flat;
}

}  // namespace vgpu::generator
