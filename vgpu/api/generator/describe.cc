// Describes the fields of a structure, from its layout and the table's `struct` lines.
#include <fmt/format.h>
#include <kj/debug.h>

#include <algorithm>

#include "table.h"

namespace vgpu::generator {

namespace {

// A clause about a member: `waitValue.address owns 4`, `waitValue when operation VALUE ...`.
struct Said {
  std::string verb;
  std::string member;  // its path from the described structure, as for all members here
  Clause rest;
};

class Describer {
 public:
  Describer(const Table& table, const VendorType& structure)
      : table(table), structure(structure), members(table.types.flatMembers(structure)) {
    collect(structure, "");
  }

  std::vector<DescribedField> run() {
    for (auto& member : members)
      if (table.types.findStructure(member.type) == nullptr && !find("plain", member)) add(member);
    return fields;
  }

 private:
  // Collects the clauses of a structure at that path, and of the structures nested in it.
  void collect(const VendorType& of, const std::string& path) {
    if (auto own = table.descriptors.find(of.name); own != table.descriptors.end())
      for (auto& clause : own->second) read(clause, path);
    for (auto& member : of.members)
      if (auto* inner = table.types.findStructure(member.type)) collect(*inner, path + member.name + ".");
  }

  void read(const Clause& clause, const std::string& path) {
    if (clause.size() > 2 && (clause[1] == "when" || clause[1] == "owns")) {
      say({clause[1], path + clause[0], {clause.begin() + 2, clause.end()}});
      if (clause[1] == "when") all.back().rest[0] = path + clause[2];
      return;
    }
    KJ_REQUIRE(clause[0] == "plain" || clause[0] == "valid", "a structure's clause is plain, valid, when or owns",
               clause[0].c_str());
    for (size_t i = 1; i < clause.size(); ++i) say({clause[0], path + clause[i], {}});
  }

  void say(const Said& said) {
    KJ_REQUIRE(std::ranges::any_of(members, [&](auto& member) { return isAt(member, said.member); }),
               "the structure has no such member", structure.name.c_str(), said.member.c_str());
    all.push_back(said);
  }

  // Whether the member is at that path, or below it.
  static bool isAt(const Member& member, const std::string& path) {
    return member.name == path || member.name.starts_with(path + ".");
  }

  const Said* find(const std::string& verb, const Member& member) const {
    auto found = std::ranges::find_if(all, [&](auto& said) { return said.verb == verb && isAt(member, said.member); });
    return found == all.end() ? nullptr : &*found;
  }

  Member get(const std::string& name) const {
    auto found = std::ranges::find(members, name, &Member::name);
    KJ_REQUIRE(found != members.end(), "the structure has no such member", structure.name.c_str(), name.c_str());
    return *found;
  }

  void add(const Member& member) {
    DescribedField field{.member = member};
    const Kind* kind = table.findKindOfType(member.type);
    const VendorType* type = table.types.find(member.type);
    bool isPointer = member.type.back() == '*' || (type != nullptr && type->what == VendorType::pointer);
    if (find("valid", member)) {
      const VendorType& choice = enumerationOf(member, "only an enumeration can have valid values");
      field.what = "choice";
      for (auto& [name, value] : choice.values) field.values |= bitOf(choice, name);
    } else if (kind != nullptr) {
      field.what = "handle";
      field.kind = kind->name;
      field.nullable = kind->nullable;
    } else if (const Said* said = find("owns", member)) {
      field.what = "memory";
      field.bytes = static_cast<uint32_t>(std::stoul(said->rest[0]));
    } else {
      KJ_REQUIRE(!isPointer, "a structure has a pointer that no clause describes", structure.name.c_str(), member.name.c_str());
      return;  // a number
    }
    addConditions(field);
    fields.push_back(field);
  }

  const VendorType& enumerationOf(const Member& member, const char* otherwise) const {
    const VendorType* type = table.types.find(member.type);
    KJ_REQUIRE(type != nullptr && type->what == VendorType::enumeration, otherwise, member.name.c_str());
    return *type;
  }

  // The bit of an enumeration's value.
  static uint64_t bitOf(const VendorType& type, const std::string& name) {
    auto value = type.values.find(name);
    KJ_REQUIRE(value != type.values.end() && value->second >= 0 && value->second < 64,
               "the enumeration has no such value below 64", name.c_str());
    return uint64_t{1} << value->second;
  }

  void addConditions(DescribedField& field) const {
    for (auto& said : all) {
      if (said.verb != "when" || !isAt(field.member, said.member)) continue;
      const Member selector = get(said.rest[0]);
      const VendorType& type = enumerationOf(selector, "only an enumeration can say whether a member is present");
      uint64_t values = 0;
      for (size_t i = 1; i < said.rest.size(); ++i) values |= bitOf(type, said.rest[i]);
      field.conditions.push_back({selector.offset, values});
    }
    bool shares = field.what != "choice" && std::ranges::any_of(members, [&](auto& other) {
                    return table.types.findStructure(other.type) == nullptr && other.name != field.member.name &&
                           other.offset < field.member.offset + field.member.bytes &&
                           field.member.offset < other.offset + other.bytes;
                  });
    KJ_REQUIRE(!shares || !field.conditions.empty(), "a member of a union needs a clause that "
                                                     "says when it is present", structure.name.c_str(),
               field.member.name.c_str());
  }

  const Table& table;
  const VendorType& structure;
  const std::vector<Member> members;
  std::vector<Said> all;
  std::vector<DescribedField> fields;
};

std::string handlesOf(const Kind& kind, bool nullable) {
  return fmt::format("api::described::{}[{}]", nullable ? "nullableHandles" : "handles", kind.number);
}

std::string expressionOf(const Table& table, const std::string& elementType, bool nullable) {
  if (auto* kind = table.findKindOfType(elementType)) return handlesOf(*kind, nullable);
  if (auto* type = table.types.findStructure(elementType)) {
    describe(table, *type);
    return "api::described::" + type->name;
  }
  return fmt::format("api::described::bytes{}", elementType == "void" ? 1 : table.types.bytesOf(elementType));
}

}  // namespace

std::vector<DescribedField> describe(const Table& table, const VendorType& structure) {
  return Describer(table, structure).run();
}

std::string describedOf(const Table& table, const Field& field) {
  if (field.type == Type::list && field.effect != Effect::none) return handlesOf(*table.findKind(field.kind), field.nullable);
  return field.type == Type::described ? expressionOf(table, field.elementType, field.nullable) : "";
}

bool hasHandles(const Table& table, const std::string& elementType) {
  if (table.findKindOfType(elementType) != nullptr) return true;
  const VendorType* type = table.types.findStructure(elementType);
  return type != nullptr && std::ranges::any_of(describe(table, *type), [](auto& field) { return field.what == "handle"; });
}

}  // namespace vgpu::generator
