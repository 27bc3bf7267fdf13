// Decides how each parameter of a driver entry appears in the row's frame, by its type and the row's clauses.
#include <kj/debug.h>

#include <algorithm>
#include <utility>

#include "text.h"

namespace vgpu::generator {

std::optional<std::string> findCount(const Row& row, const char* word, const std::string& name) {
  for (auto& clause : row.find(word))
    for (size_t i = 1; i < clause.size(); ++i)
      if (unbracketed(clause[i]) == name) return bracketed(clause[i]);
  return std::nullopt;
}

namespace {

Type numberOf(const Table& table, const std::string& type) {
  if (auto number = numberOfC(type)) return *number;
  if (type == "CUdevice") return Type::i32;
  const VendorType* vendor = table.types.find(type);
  KJ_REQUIRE(vendor != nullptr, "a type that the generator does not know", type.c_str());
  if (vendor->what == VendorType::enumeration) return Type::i32;
  KJ_REQUIRE(vendor->what == VendorType::number, "such a parameter needs a half by hand, or a clause that says what it is",
             type.c_str());
  return vendor->bytes == 4 ? Type::u32 : Type::u64;
}

Effect effectOn(const Row& row, const std::string& name) {
  for (auto& clause : row.clauses)
    if (effectNamed(clause[0]) != Effect::none && isNamed(row, clause[0].c_str(), name)) return effectNamed(clause[0]);
  return Effect::none;
}

void setObject(Field& field, const Kind& kind, Effect effect) {
  field.effect = effect == Effect::none ? Effect::uses : effect;
  field.kind = kind.name;
  field.nullable = kind.nullable && (field.effect == Effect::uses || field.effect == Effect::changes);
}

// A structure, an array or text that the entry reads.
void addInput(const Table& table, Row& row, Field field, const std::string& element, const std::string& count) {
  field.optional = isNamed(row, "optional", field.name);
  if (element == "char" && count.empty()) {
    field.type = Type::text;
  } else {
    field.type = Type::described;
    field.elementType = element;
    field.count = count;
    Effect effect = effectOn(row, field.name);
    if (auto* kind = table.findKindOfType(element)) setObject(field, *kind, effect);
    KJ_REQUIRE(effect == Effect::none || field.effect == effect, "a parameter that is changed or destroyed must be an object of a kind",
               field.name.c_str());
    describedOf(table, field);
  }
  row.frame.fields.push_back(field);
}

// A value that the entry writes.
void addOutput(const Table& table, Row& row, Field field, const std::string& element, const std::string& count) {
  KJ_REQUIRE(!hasHandles(table, element), "an object that is not created needs a half by hand", field.name.c_str());
  field.elementType = element;
  field.count = count;
  const bool isStructure = table.types.findStructure(element) != nullptr;
  field.type = !count.empty() ? Type::described : isStructure ? Type::structure : numberOf(table, element);
  row.results.fields.push_back(field);
}

void addPointer(const Table& table, Row& row, const Field& field, const Parameter& parameter) {
  const auto reads = findCount(row, "reads", field.name), writes = findCount(row, "writes", field.name);
  const std::string readCount = reads.value_or(""), writtenCount = writes.value_or("");
  std::string element = parameter.pointee();
  KJ_REQUIRE(element != "void" || !readCount.empty() || !writtenCount.empty(),
             "such a parameter needs a half by hand, or a clause that says what it is", parameter.name.c_str(),
             parameter.type.c_str());
  const bool isInput = reads || (parameter.isConstPointer() && !writes);
  if (isInput) addInput(table, row, field, element, readCount);
  if (isInput && !writes) return;
  KJ_REQUIRE(!reads || (table.types.findStructure(element) != nullptr && readCount.empty() && writtenCount.empty()),
             "a parameter that is read and written must be one structure", parameter.name.c_str());
  addOutput(table, row, field, element, writtenCount);
}

}  // namespace

void addField(const Table& table, Row& row, const Parameter& parameter) {
  Field field;
  field.name = parameter.name;
  Effect effect = effectOn(row, parameter.name);
  const Kind* kind = table.findKindOfType(parameter.isPointer() ? parameter.pointee() : parameter.type);
  if (kind != nullptr && (!parameter.isPointer() || effect == Effect::creates)) {
    setObject(field, *kind, effect);
    if (isNamed(row, "optional", parameter.name) && field.effect == Effect::uses) field.nullable = true;
    field.parent = isNamed(row, "parent", parameter.name);
    row.frame.fields.push_back(field);
  } else if (isNamed(row, "address", parameter.name)) {
    row.frame.fields.push_back(field);  // as a plain number
  } else if (parameter.isPointer()) {
    // In and out: the program's capacity, then the number of elements.
    auto writes = row.find("writes");
    bool isRoom = std::ranges::any_of(writes, [&](const Clause& clause) {
      return std::any_of(clause.begin() + 1, clause.end(), [&](auto& each) { return bracketed(each) == parameter.name; });
    });
    if (isRoom) {
      field.type = numberOf(table, parameter.pointee());
      row.frame.fields.push_back(field);
    }
    addPointer(table, row, field, parameter);
  } else if (table.types.findStructure(parameter.type) != nullptr) {
    addInput(table, row, field, parameter.type, "");
  } else {
    KJ_REQUIRE(effect == Effect::none, "a parameter that is created or destroyed must be an object of a kind", parameter.name.c_str());
    field.type = numberOf(table, parameter.type);
    row.frame.fields.push_back(field);
  }
}

}  // namespace vgpu::generator
