#include "types.h"

#include <kj/debug.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "text.h"

namespace vgpu::generator {

namespace {

constexpr const char* classNames[] = {"number", "pointer", "enum", "structure"};  // of VendorType

// `CUarray res.array.hArray @8`.
Member readMember(const std::string& text) {
  size_t at = text.rfind(" @");
  KJ_REQUIRE(at != std::string::npos, "a member has its offset", text.c_str());
  Parameter parameter = readParameter(text.substr(0, at));
  return {parameter.type, parameter.name, static_cast<uint32_t>(std::stoul(text.substr(at + 2))), 0};
}

}  // namespace

std::optional<Type> numberOfC(const std::string& type) {
  using enum Type;
  constexpr std::pair<const char*, Type> types[] = {
      {"char", u8},       {"unsigned char", u8}, {"short", u16},         {"unsigned short", u16},
      {"int", i32},       {"unsigned int", u32}, {"float", f32},         {"long", i64},
      {"long long", i64}, {"size_t", u64},       {"unsigned long", u64}, {"unsigned long long", u64},
      {"double", f64}};
  for (auto& [name, number] : types)
    if (type == name) return number;
  return std::nullopt;
}

VendorTypes::VendorTypes(const std::string& path) {
  for (TableText lines(path); lines.next();) {
    KJ_CONTEXT("the types' line", lines.number);
    auto all = words(lines.head);
    KJ_REQUIRE(all.size() >= 2, "a type has a name", lines.head.c_str());
    if (all[0] == "same") {
      others[all[1]] = all.at(2);
      continue;
    }
    auto what = std::ranges::find(classNames, all[0]);
    KJ_REQUIRE(what != std::end(classNames), "a type is number, pointer, enum, structure or same", all[0].c_str());
    VendorType type{.what = static_cast<VendorType::Class>(what - classNames), .name = all[1]};
    const bool hasBytes = type.what == VendorType::number || type.what == VendorType::structure;
    type.bytes = hasBytes ? static_cast<uint32_t>(std::stoul(all.at(2))) : type.what == VendorType::pointer ? 8 : 4;
    if (type.what >= VendorType::enumeration)
      for (auto& part : split(parenthesised(lines.head, lines.head.find('(')), ',')) {
        if (type.what == VendorType::structure) type.members.push_back(readMember(part));
        if (type.what == VendorType::enumeration) type.values[words(part).at(0)] = std::stoll(words(part).at(1));
      }
    KJ_REQUIRE(types.emplace(type.name, type).second, "a type is defined twice", type.name.c_str());
  }
}

const VendorType* VendorTypes::find(const std::string& name) const {
  auto known = types.find(name);
  if (known != types.end()) return &known->second;
  auto other = others.find(name);
  return other != others.end() ? find(other->second) : nullptr;
}

const VendorType* VendorTypes::findStructure(const std::string& name) const {
  const VendorType* type = find(name);
  return type != nullptr && type->what == VendorType::structure ? type : nullptr;
}

uint32_t VendorTypes::bytesOf(const std::string& spelled) const {
  if (size_t bracket = spelled.find('['); bracket != std::string::npos)
    return static_cast<uint32_t>(std::stoul(spelled.substr(bracket + 1))) * bytesOf(spelled.substr(0, bracket));
  if (spelled.back() == '*' || spelled.ends_with("*const")) return 8;
  if (auto number = numberOfC(spelled)) return infoOf(*number).bits / 8;
  const VendorType* type = find(spelled);
  KJ_REQUIRE(type != nullptr, "a type that the generator does not know", spelled.c_str());
  return type->bytes;
}

std::vector<Member> VendorTypes::flatMembers(const VendorType& structure) const {
  std::vector<Member> flat;
  for (Member member : structure.members) {
    member.bytes = bytesOf(member.type);
    flat.push_back(member);
    const VendorType* inner = findStructure(member.type);
    if (inner == nullptr) continue;
    for (Member& part : flatMembers(*inner))
      flat.push_back({part.type, member.name + "." + part.name, member.offset + part.offset, part.bytes});
  }
  return flat;
}

}  // namespace vgpu::generator
