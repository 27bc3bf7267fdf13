#include "table.h"

#include <algorithm>
#include <cctype>
#include <functional>

#include "text.h"

namespace vgpu::generator {

namespace {

std::string capitalised(std::string text) {
  if (!text.empty()) text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return text;
}

// Splits the name into words, joined by `separator`; `convert` changes the case of their letters.
std::string apart(const std::string& name, char separator, int (*convert)(int)) {
  std::string out;
  for (unsigned char c : name) {
    if (std::isupper(c)) out += separator;
    out += static_cast<char>(convert(c));
  }
  return out;
}

}  // namespace

std::string Field::accessor() const { return capitalised(name); }

std::string Parameter::pointee() const {
  const size_t begin = type.starts_with("const ") ? 6 : 0;
  return type.substr(begin, type.find_last_not_of(" *") + 1 - begin);
}

const Field* Structure::find(const std::string& wanted) const { return findBy(fields, &Field::name, wanted); }

std::string Row::typeName() const { return capitalised(halfName()); }

const Parameter* Row::findParameter(const std::string& wanted) const { return findBy(parameters, &Parameter::name, wanted); }

std::vector<Clause> Row::find(const std::string& word) const {
  std::vector<Clause> found;
  for (auto& clause : clauses)
    if (clause.front() == word) found.push_back(clause);
  return found;
}

const Kind* Table::findKindOfType(const std::string& type) const {
  return type.empty() ? nullptr : findBy(kinds, &Kind::type, type);
}
const Kind* Table::findKind(const std::string& name) const { return findBy(kinds, &Kind::name, name); }

std::vector<const Field*> byPlace(const Structure& structure) {
  std::vector<const Field*> fields;
  for (auto& field : structure.fields) fields.push_back(&field);
  std::ranges::stable_sort(fields, std::greater(), [](auto* field) { return infoOf(field->type).bits; });
  return fields;
}

void placeFields(Structure& structure) {
  uint32_t bits = 0;
  for (auto* placed : byPlace(structure)) {
    Field& field = structure.fields[static_cast<size_t>(placed - structure.fields.data())];
    field.place = !field.isNumber() ? structure.pointers++ : field.type == Type::boolean ? bits : bits / 8;
    bits += infoOf(field.type).bits;
  }
  structure.dataWords = (bits + 63) / 64;
}

std::string enumerantOf(const std::string& name) { return apart(name, '_', std::toupper); }
std::string wordsOf(const std::string& name) { return apart(name, ' ', std::tolower); }
std::string kindOf(const std::string& name) { return "api::Kind::" + enumerantOf(name); }

std::string signatureOf(const Row& row) {
  std::string fields;
  for (auto& field : row.frame.fields) {
    fields += (fields.empty() ? "" : ", ") + field.name + " ";
    if (field.type == Type::described) {
      fields += field.elementType + (field.count.empty() ? "" : "[]");
    } else if (field.type == Type::list) {
      fields += std::string(infoOf(field.element).name) + "[]";
    } else {
      fields += infoOf(field.type).name;
    }
  }
  return row.name + "(" + fields + ")";
}

Effect effectNamed(const std::string& word) {
  for (auto effect : {Effect::creates, Effect::uses, Effect::changes, Effect::destroys})
    if (word == nameOf(effect)) return effect;
  return Effect::none;
}

}  // namespace vgpu::generator
