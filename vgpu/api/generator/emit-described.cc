// Emits the descriptions of the structures in frames, and the comparison of their layouts with the compiled header.
#include <fmt/format.h>

#include <algorithm>

#include "table.h"

namespace vgpu::generator {

namespace {

// The structures that are elements of frames' lists.
std::vector<const VendorType*> usedBy(const Table& table) {
  std::vector<const VendorType*> used;
  for (auto* row : table.frames) {
    if (row == nullptr) continue;
    for (auto* fields : {&row->frame.fields, &row->results.fields})
      for (auto& field : *fields)
        if (auto* type = table.types.findStructure(field.elementType); type != nullptr && !std::ranges::count(used, type))
          used.push_back(type);
  }
  return used;
}

std::string fieldText(const VendorType& structure, const DescribedField& field, std::string& conditions) {
  std::string text = fmt::format("{{.what = FieldClass::{}, .offset = {}", field.what, field.member.offset);
  if (field.bytes != 0) text += fmt::format(", .bytes = {}", field.bytes);
  if (field.what == "handle") text += fmt::format(", .kind = Kind::{}", enumerantOf(field.kind));
  if (field.what == "choice") text += fmt::format(", .values = {:#x}", field.values);
  if (field.nullable) text += ", .nullable = true";
  if (!field.conditions.empty()) {
    std::string name = fmt::format("{}At{}Conditions", structure.name, conditions.size());
    conditions += fmt::format("constexpr Condition {}[] = {{", name);
    for (auto& [offset, values] : field.conditions) conditions += fmt::format("{{{}, {:#x}}}, ", offset, values);
    conditions += "};\n";
    text += ", .conditions = " + name;
  }
  return text + "},\n";
}

}  // namespace

std::string emitDescribedHeader(const Table& table) {
  std::string out =
      fmt::format("{}#pragma once\n\n#include \"vgpu/api/described.h\"\n\nnamespace vgpu::api::described {{\n\n", banner);
  out +=
      "extern const Described bytes1, bytes2, bytes4, bytes8;  // numbers of that many bytes\n"
      "extern const Described handles[kindCount], nullableHandles[kindCount];  // of objects, by kind\n";
  for (auto* structure : usedBy(table)) out += fmt::format("extern const Described {};\n", structure->name);
  return out + "\n}  // namespace vgpu::api::described\n";
}

std::string emitDescribedSource(const Table& table) {
  std::string out =
      fmt::format("{}#include \"cuda-described.h\"\n\nnamespace vgpu {{\n\nnamespace api::described {{\n\n", banner);
  for (int bytes : {1, 2, 4, 8}) out += fmt::format("constinit const Described bytes{0}{{{0}, {{}}}};\n", bytes);
  for (bool nullable : {false, true}) {
    std::string name = nullable ? "nullableHandles" : "handles", fields, elements = "{},\n";
    unsigned number = 0;
    for (auto& kind : table.kinds) {
      while (++number < kind.number) elements += "{},\n";
      fields += fmt::format(
          "constexpr DescribedField {}{}[] = {{{{.what = FieldClass::handle, .offset = 0, .kind = Kind::{}, .nullable = "
          "{}}}}};\n",
          name, kind.number, enumerantOf(kind.name), nullable || kind.nullable);
      elements += fmt::format("{{8, {}{}}},\n", name, kind.number);
    }
    out += fields + fmt::format("constinit const Described {}[kindCount] = {{\n{}}};\n", name, elements);
  }
  for (auto* structure : usedBy(table)) {
    std::string fields, conditions;
    for (auto& field : describe(table, *structure)) fields += fieldText(*structure, field, conditions);
    out += conditions;
    if (!fields.empty()) out += fmt::format("constexpr DescribedField {}Fields[] = {{\n{}}};\n", structure->name, fields);
    out += fmt::format("constinit const Described {}{{{}, {}}};\n", structure->name, structure->bytes,
                       fields.empty() ? "{}" : structure->name + "Fields");
  }
  return out + "\n}  // namespace api::described\n\n}  // namespace vgpu\n";
}

// Compiled by a test: a compile error names what differs.
std::string emitParity(const Table& table) {
  std::string out = fmt::format(
      "{}#define __CUDA_API_VERSION_INTERNAL  // every version under its own name\n#include <cuda.h>\n\n"
      "#include <cstddef>\n\n",
      banner);
  for (auto* structure : usedBy(table)) {
    out += fmt::format("static_assert(sizeof({}) == {});\n", structure->name, structure->bytes);
    for (auto& member : structure->members)
      out += fmt::format("static_assert(offsetof({}, {}) == {});\n", structure->name, member.name, member.offset);
  }
  return out;
}

}  // namespace vgpu::generator
