#include "table.h"

#include <algorithm>
#include <cctype>

namespace vgpu::generator {

namespace {

std::string capitalised(std::string text) {
  if (!text.empty()) text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return text;
}

// The name in words, each after the first begun by `separator`.
std::string apart(const std::string& name, char separator) {
  std::string out;
  for (char c : name) {
    if (std::isupper(static_cast<unsigned char>(c))) out += separator;
    out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return out;
}

// Of a number; 0 of what a pointer points to.
uint32_t bitsOf(Type type) {
  switch (type) {
    case Type::boolean: return 1;
    case Type::u8: return 8;
    case Type::u16: return 16;
    case Type::u32:
    case Type::i32:
    case Type::f32: return 32;
    case Type::u64:
    case Type::i64:
    case Type::f64:
    case Type::place: return 64;
    default: return 0;
  }
}

}  // namespace

void Field::setName(const std::string& of) {
  name = of;
  accessor = capitalised(of);
}

const Field* Structure::find(const std::string& wanted) const {
  for (auto& field : fields)
    if (field.name == wanted) return &field;
  return nullptr;
}

std::string Row::typeName() const { return capitalised(halfName()); }

const Parameter* Row::findParameter(const std::string& wanted) const {
  for (auto& parameter : parameters)
    if (parameter.name == wanted) return &parameter;
  return nullptr;
}

std::vector<Clause> Row::find(const std::string& word) const {
  std::vector<Clause> found;
  for (auto& clause : clauses)
    if (clause.front() == word) found.push_back(clause);
  return found;
}

const Kind* Table::findKindOfType(const std::string& type) const {
  for (auto& kind : kinds)
    if (!kind.type.empty() && kind.type == type) return &kind;
  return nullptr;
}

const Kind* Table::findKind(const std::string& name) const {
  for (auto& kind : kinds)
    if (kind.name == name) return &kind;
  return nullptr;
}

std::vector<Field> byPlace(const Structure& structure) {
  std::vector<Field> fields = structure.fields;
  std::stable_sort(fields.begin(), fields.end(), [&](auto& a, auto& b) { return bitsOf(a.type) > bitsOf(b.type); });
  uint32_t at = 0, pointer = 0;
  for (auto& field : fields) {
    field.place = !field.isNumber() ? pointer++ : field.type == Type::boolean ? at : at / 8;
    at += bitsOf(field.type);
  }
  return fields;
}

void placeFields(Structure& structure) {
  uint32_t bits = 0;
  for (auto& placed : byPlace(structure)) {
    for (auto& field : structure.fields)
      if (field.name == placed.name) field.place = placed.place;
    bits += bitsOf(placed.type);
    structure.pointers += !placed.isNumber();
  }
  structure.dataWords = (bits + 63) / 64;
}

std::string enumerantOf(const std::string& name) {
  std::string out = apart(name, '_');
  std::transform(out.begin(), out.end(), out.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return out;
}

std::string wordsOf(const std::string& name) { return apart(name, ' '); }

std::string kindOf(const std::string& name) { return "api::Kind::" + enumerantOf(name); }

const char* cppTypeOf(Type number) {
  constexpr const char* names[] = {"bool",    "uint8_t", "uint16_t", "uint32_t", "uint64_t",
                                   "int32_t", "int64_t", "float",    "double",   "uint64_t"};
  return names[static_cast<size_t>(number)];
}

std::string signatureOf(const Row& row) {
  std::string fields;
  for (auto& field : row.frame.fields) {
    fields += (fields.empty() ? "" : ", ") + field.name + " ";
    if (field.type == Type::described) {
      fields += field.elementType + (field.count.empty() ? "" : "[]");
    } else if (field.type == Type::list) {
      fields += std::string(typeNames[static_cast<size_t>(field.element)]) + "[]";
    } else {
      fields += typeNames[static_cast<size_t>(field.type)];
    }
  }
  return row.name + "(" + fields + ")";
}

const char* nameOf(Route route) {
  constexpr const char* names[] = {"post", "call", "signal", "recall", "alias", "local", "forbid"};
  return names[static_cast<size_t>(route)];
}

const char* nameOf(Replay replay) {
  constexpr const char* names[] = {"query", "build", "work"};
  return names[static_cast<size_t>(replay)];
}

const char* nameOf(Effect effect) {
  constexpr const char* names[] = {"none", "creates", "uses", "changes", "destroys"};
  return names[static_cast<size_t>(effect)];
}

Effect effectNamed(const std::string& word) {
  for (auto effect : {Effect::creates, Effect::uses, Effect::changes, Effect::destroys})
    if (word == nameOf(effect)) return effect;
  return Effect::none;
}

}  // namespace vgpu::generator
