// What the fields of a structure are: from its layout and the table's `struct` lines.
#include <fmt/format.h>
#include <kj/debug.h>

#include <algorithm>
#include <set>

#include "table.h"

namespace vgpu::generator {

namespace {

// Of the structure that is described: its clauses, and those of structures in it with the paths of their members.
class Describer {
 public:
  Describer(const Table& table, const VendorType& structure) : table(table), structure(structure) {
    members = table.types.flatMembers(structure);
    collect(structure, "");
  }

  std::vector<DescribedField> run() {
    for (auto& clause : clauses) checkNames(clause);
    for (auto& member : members)
      if (table.types.findStructure(member.type) == nullptr && !named("plain", member) && !named("extra", member)) add(member);
    // A kernel's parameters are looked at while its handle is still the virtual one.
    std::ranges::stable_sort(fields, [](auto& a, auto& b) { return (a.what == "parameters") > (b.what == "parameters"); });
    return fields;
  }

 private:
  void collect(const VendorType& of, const std::string& path) {
    if (auto own = table.descriptors.find(of.name); own != table.descriptors.end())
      for (Clause clause : own->second) {
        prefix(clause, path);
        clauses.push_back(clause);
      }
    for (auto& member : of.members)
      if (auto* inner = table.types.findStructure(member.type)) collect(*inner, path + member.name + ".");
  }

  // The names of members get the path before them: `ctx when type VALUE`, `optional ctx`, `reads attrs[numAttrs]`.
  static void prefix(Clause& clause, const std::string& path) {
    auto rename = [&](std::string& word) {
      size_t open = word.find('[');
      word = path + word.substr(0, open) +
             (open == std::string::npos ? "" : "[" + path + word.substr(open + 1));
    };
    if (clause.size() > 2 && (clause[1] == "when" || clause[1] == "owns")) {
      rename(clause[0]);
      if (clause[1] == "when") rename(clause[2]);
      return;
    }
    for (size_t i = 1; i < clause.size(); ++i) rename(clause[i]);
  }

  void checkNames(const Clause& clause) const {
    static const std::set<std::string> verbs{"optional", "reserved", "plain", "reads", "text", "parameters", "valid"};
    if (clause.size() > 2 && (clause[1] == "when" || clause[1] == "owns")) return requireMember(clause[0]);
    KJ_REQUIRE(verbs.contains(clause[0]),
               "a structure's clause is optional, reserved, plain, reads, text, parameters, valid, when or owns",
               clause[0].c_str());
    for (size_t i = 1; i < clause.size(); ++i) requireMember(clause[i].substr(0, clause[i].find('[')));
  }

  void requireMember(const std::string& name) const {
    KJ_REQUIRE(std::ranges::any_of(members, [&](auto& member) { return isAt(member, name); }), "the structure has no such member",
               structure.name.c_str(), name.c_str());
  }

  // Whether the member is that path's, or below it.
  static bool isAt(const Member& member, const std::string& path) {
    return member.name == path || member.name.starts_with(path + ".");
  }

  const Clause* named(const std::string& verb, const Member& member) const {
    for (auto& clause : clauses) {
      if (verb == "extra" && clause[0] == "parameters" && clause.at(3) == member.name) return &clause;
      if (clause[0] != verb) continue;
      size_t last = verb == "parameters" ? 2 : clause.size();
      for (size_t i = 1; i < last; ++i)
        if (isAt(member, clause[i].substr(0, clause[i].find('[')))) return &clause;
    }
    return nullptr;
  }

  Member get(const std::string& name) const {
    auto found = std::ranges::find_if(members, [&](auto& member) { return member.name == name; });
    KJ_REQUIRE(found != members.end(), "the structure has no such member", structure.name.c_str(), name.c_str());
    return *found;
  }

  void add(const Member& member) {
    DescribedField field{.member = member};
    const Kind* kind = table.findKindOfType(member.type);
    const VendorType* type = table.types.find(member.type);
    bool isPointer = member.type.back() == '*' || (type != nullptr && type->what == VendorType::pointer);
    field.nullable = named("optional", member) != nullptr || (kind != nullptr && kind->nullable);
    if (named("reserved", member)) {
      field.what = "reserved";
      field.bytes = member.bytes;
    } else if (named("valid", member)) {
      field.what = "choice";
      field.values = valuesOf(member);
    } else if (const Clause* clause = named("parameters", member)) {
      field.what = "parameters";
      field.function = get(clause->at(2));
      field.extra = get(clause->at(3));
    } else if (const Clause* clause = named("reads", member)) {
      readList(field, *clause);
    } else if (named("text", member)) {
      field.what = "text";
    } else if (kind != nullptr) {
      field.what = "handle";
      field.kind = kind->name;
    } else {
      field.bytes = memoryAt(member);
      KJ_REQUIRE(!isPointer || field.bytes != 0, "a structure with a pointer that nothing describes", structure.name.c_str(),
                 member.name.c_str());
      if (field.bytes == 0) return;  // a number
      field.what = "memory";
    }
    addConditions(field);
    fields.push_back(field);
  }

  void readList(DescribedField& field, const Clause& clause) const {
    field.what = "list";
    field.elementType = Parameter{field.member.type, ""}.pointee();
    if (field.elementType.starts_with("const ")) field.elementType = field.elementType.substr(6);
    for (size_t i = 1; i < clause.size(); ++i)
      if (size_t open = clause[i].find('['); clause[i].substr(0, open) == field.member.name)
        field.count = get(clause[i].substr(open + 1, clause[i].size() - open - 2));
    KJ_REQUIRE(field.count.bytes == 4 || field.count.bytes == 8, "a list in a structure has its length beside it",
               field.member.name.c_str());
  }

  // A bit for each value of an enumeration.
  uint64_t valuesOf(const Member& member) const {
    const VendorType* type = table.types.find(member.type);
    const bool isChoice = type != nullptr && type->what == VendorType::enumeration;
    KJ_REQUIRE(isChoice, "what has valid values is an enumeration", member.name.c_str());
    uint64_t values = 0;
    for (auto& [name, value] : type->values) values |= bitOf(*type, name);
    return values;
  }

  // Of a value of an enumeration.
  static uint64_t bitOf(const VendorType& type, const std::string& name) {
    auto value = type.values.find(name);
    KJ_REQUIRE(value != type.values.end() && value->second >= 0 && value->second < 64,
               "the enumeration has no such value below 64", name.c_str());
    return uint64_t{1} << value->second;
  }

  uint32_t memoryAt(const Member& member) const {
    for (auto& clause : clauses)
      if (clause.size() > 2 && clause[1] == "owns" && clause[0] == member.name) return static_cast<uint32_t>(std::stoul(clause[2]));
    return 0;
  }

  void addConditions(DescribedField& field) const {
    for (auto& clause : clauses)
      if (clause.size() > 3 && clause[1] == "when" && isAt(field.member, clause[0])) {
        Member selector = get(clause[2]);
        const VendorType* type = table.types.find(selector.type);
        KJ_REQUIRE(type != nullptr && type->what == VendorType::enumeration, "what says whether a member is there is an enumeration",
                   selector.name.c_str());
        uint64_t values = 0;
        for (size_t i = 3; i < clause.size(); ++i) values |= bitOf(*type, clause[i]);
        field.conditions.push_back({selector.offset, values});
      }
    bool shares = field.what != "reserved" && field.what != "choice" && std::ranges::any_of(members, [&](auto& other) {
                    return table.types.findStructure(other.type) == nullptr && other.name != field.member.name &&
                           other.offset < field.member.offset + field.member.bytes &&
                           field.member.offset < other.offset + other.bytes;
                  });
    KJ_REQUIRE(!shares || !field.conditions.empty(), "a member of a union says when it is there", structure.name.c_str(),
               field.member.name.c_str());
  }

  const Table& table;
  const VendorType& structure;
  std::vector<Member> members;
  std::vector<Clause> clauses;
  std::vector<DescribedField> fields;
};

std::string expressionOf(const Table& table, const std::string& elementType, bool nullable) {
  if (auto* kind = table.findKindOfType(elementType))
    return fmt::format("api::described::{}[{}]", nullable ? "nullableHandles" : "handles", kind->number);
  if (auto* type = table.types.findStructure(elementType)) {
    describe(table, *type);
    return "api::described::" + type->name;
  }
  return fmt::format("api::described::bytes{}", elementType == "void" ? 1 : table.types.bytesOf(elementType));
}

}  // namespace

std::vector<DescribedField> describe(const Table& table, const VendorType& structure) { return Describer(table, structure).run(); }

std::string describedOf(const Table& table, const Field& field) {
  if (field.type == Type::list && field.effect != Effect::none)
    return fmt::format("api::described::{}[{}]", field.nullable ? "nullableHandles" : "handles", table.findKind(field.kind)->number);
  return field.type == Type::described ? expressionOf(table, field.elementType, field.nullable) : "";
}

std::string describedElement(const Table& table, const DescribedField& list) {
  return expressionOf(table, list.elementType, false);
}

bool hasHandles(const Table& table, const std::string& elementType) {
  if (table.findKindOfType(elementType) != nullptr) return true;
  const VendorType* type = table.types.findStructure(elementType);
  if (type == nullptr) return false;
  return std::ranges::any_of(describe(table, *type), [&](auto& field) {
    return field.what == "handle" || (field.what == "list" && hasHandles(table, field.elementType));
  });
}

}  // namespace vgpu::generator
