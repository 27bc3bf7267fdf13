// Emits tables that both sides read: kinds, methods and their effects, and exported entries.
#include <fmt/format.h>
#include <kj/debug.h>

#include <algorithm>

#include "text.h"

namespace vgpu::generator {

namespace {

std::string quoted(const std::string& text) { return text.empty() ? "nullptr" : fmt::format("\"{}\"", text); }

// The field named by word `which` of a clause, as NumberField.
std::string fieldOf(const Row& row, const Clause& clause, size_t which) {
  const Field* field = row.frame.find(clause.at(which));
  KJ_REQUIRE(field != nullptr, "such a clause must name fields of the frame", clause[0].c_str(), clause[which].c_str());
  const uint32_t bits = infoOf(field->type).bits;
  KJ_REQUIRE(bits >= 32, "such a field must be a number of 32 or 64 bits", field->name.c_str());
  return fmt::format("{{{}, {}}}, ", field->place, bits / 8);
}

// The fields named by the clause from word `first` on.
std::string fieldsOf(const Row& row, const Clause& clause, size_t first) {
  std::string out;
  for (size_t i = first; i < clause.size(); ++i) out += fieldOf(row, clause, i);
  return out;
}

// For clauses that name a slab and numbers whose product is its bytes; the numbers go to `sizes`, as one array per slab.
std::string slabsOf(const Row& row, const char* word, std::string& sizes) {
  return joined(row.find(word), "", [&](const Clause& clause) {
    std::string slab = fieldOf(row, clause, 1), bytes = fieldsOf(row, clause, 2), name = "{}";
    const Field& field = *row.frame.find(clause[1]);
    if (!bytes.empty()) {
      name = fmt::format("{}{}{}Bytes", row.name, field.accessor(), word);
      sizes += fmt::format("constexpr NumberField {}[] = {{{}}};\n", name, bytes);
    }
    return fmt::format("{{{}{}, {}}}, ", slab, field.type == Type::place, name);
  });
}

std::string completionsOf(const Row& row) {
  return joined(row.find("completes"), "", [&](const Clause& clause) {
    const bool isLater = std::ranges::count(clause, "later") != 0, isAnswered = std::ranges::count(clause, "answered") != 0;
    std::string field = fieldOf(row, clause, 1);
    KJ_REQUIRE(clause.size() == 2u + isLater + isAnswered, "`completes` takes a field, `later` and `answered`", row.name.c_str());
    return fmt::format("{{{}{}, {}}}, ", field, isLater, isAnswered);
  });
}

std::string effectsOf(const Table& table, const Row& row) {
  std::string out;
  for (auto& f : row.frame.fields) {
    if (f.isNumber() ? f.effect == Effect::none
                     : !f.isHandles() && !(f.type == Type::described && hasHandles(table, f.elementType)))
      continue;
    std::string elements = f.isNumber() ? "nullptr" : fmt::format("&{}", describedOf(table, f));
    out += fmt::format("{{Effect::{}, Kind::{}, {}, {}, {}, {}, {}}}, ",
                       nameOf(f.effect == Effect::none ? Effect::uses : f.effect), f.kind.empty() ? "NONE" : enumerantOf(f.kind),
                       f.place, f.parent, f.nullable, f.type == Type::place, elements);
  }
  return out;
}

std::string header(const char* includes) {
  return fmt::format("{}#pragma once\n\n{}\nnamespace vgpu::api {{\n\n", banner, includes);
}

// One line (or none) for each entry that the driver exports.
template <typename Line>
std::string forEntries(const Table& table, const char* what, Line line) {
  std::string out = fmt::format("{}// {}\n", banner, what);
  for (auto& row : table.rows)
    if (!row.symbol.empty()) out += line(row);
  return out;
}
std::string entryLine(const Row& row) { return fmt::format("ENTRY({})\n", row.symbol); }

}  // namespace

std::string emitKinds(const Table& table) {
  std::string out = header("#include <cstddef>\n#include <cstdint>\n");
  out += "// Of objects; a handle has the number in it (vgpu/api/handle.h).\nenum class Kind : uint16_t {\n  NONE = 0,\n";
  out += joined(table.kinds, "", [](auto& kind) { return fmt::format("  {} = {},\n", enumerantOf(kind.name), kind.number); });
  out += fmt::format("}};\n\nconstexpr size_t kindCount = {};\n\nconstexpr const char* kindNames[kindCount] = {{\"none\"",
                     table.kinds.back().number + 1);
  for (auto& kind : table.kinds) out += fmt::format(", \"{}\"", wordsOf(kind.name));
  out += "};\n\n// Those that end with their device's context.\nconstexpr Kind kindsInContext[] = {";
  for (auto& kind : table.kinds)
    if (kind.inContext) out += "Kind::" + enumerantOf(kind.name) + ", ";
  return out + "};\n\n}  // namespace vgpu::api\n";
}

// The client's state of an object, for kinds that keep more than a head (intercept/session/kinds/kinds.h).
std::string emitKindStates(const Table& table) {
  std::set<std::string> headers;
  std::string includes, states;
  for (auto& kind : table.kinds) {
    if (kind.state.empty()) continue;
    if (headers.insert(kind.stateHeader).second)
      includes += fmt::format("#include \"intercept/session/kinds/{}\"\n", kind.stateHeader);
    states += fmt::format("template <>\nstruct KindState<{}> {{\n  using Type = {};\n}};\n", kindOf(kind.name), kind.state);
  }
  return fmt::format(
      "{}#pragma once\n\n{}\nnamespace vgpu::client {{\n\ntemplate <api::Kind kind>\nstruct KindState {{\n  using Type = "
      "ObjectHead;\n}};\n{}\n}}  // namespace vgpu::client\n",
      banner, includes, states);
}

// The worker's modules, for files that define KIND_MODULE before they include this one.
std::string emitKindModules(const Table& table) {
  std::string out = banner;
  for (auto& module : table.modules) out += fmt::format("KIND_MODULE({}Kind)\n", module);
  return out + "#undef KIND_MODULE\n";
}

// What the client calls for objects that are destroyed with their context, for files that define KIND_END: an entry, perhaps a deprecated
// one, or another function.
std::string emitKindEnds(const Table& table) {
  std::string out = fmt::format("{}#pragma GCC diagnostic push\n#pragma GCC diagnostic ignored \"-Wdeprecated-declarations\"\n", banner);
  for (auto kind = table.kinds.rbegin(); kind != table.kinds.rend(); ++kind) {
    if (kind->ends.empty()) continue;
    std::string what = kind->ends.starts_with("cu") ? fmt::format("fromWire<{}>(handle)", kind->type) : "thread, handle";
    out += fmt::format("KIND_END({}, {}({}))\n", enumerantOf(kind->name), kind->ends, what);
  }
  return out + "#pragma GCC diagnostic pop\n#undef KIND_END\n";
}

std::string emitMethodsHeader(const Table& table) {
  std::string out = header("#include <cstddef>\n#include <cstdint>\n\n#include \"vgpu/api/nature.h\"\n"), natures;
  out += "enum class Method : uint16_t {\n";
  for (auto* row : table.frames) {
    if (row != nullptr) out += fmt::format("  {} = {},\n", row->name, row->number);
    natures += row == nullptr ? "  {},\n"
                              : fmt::format("  {{Route::{}, Replay::{}, {}}},\n", enumerantOf(nameOf(*row->route)),
                                            enumerantOf(nameOf(row->replay)), row->noWork);
  }
  out += fmt::format("}};\n\nconstexpr size_t methodCount = {};\n\n", table.frames.size());
  out += fmt::format("inline constexpr Nature natures[methodCount] = {{\n{}}};\n", natures);
  out += "constexpr const Nature& natureOf(Method method) { return natures[static_cast<size_t>(method)]; }\n\n";
  return out + "}  // namespace vgpu::api\n";
}

std::string emitMethodsSource(const Table& table) {
  std::string arrays, rows, mirrored;
  for (auto* row : table.frames) {
    if (row == nullptr) {
      rows += "  {},\n";
      mirrored += "  {},\n";
      continue;
    }
    auto array = [&](const char* type, const char* name, const std::string& elements) -> std::string {
      if (elements.empty()) return "{}";
      arrays += fmt::format("constexpr {} {}{}[] = {{{}}};\n", type, row->name, name, elements);
      return row->name + name;
    };
    const std::string slabs = slabsOf(*row, "slab", arrays), fills = slabsOf(*row, "fills", arrays);
    const std::string effects = array("EffectField", "Effects", effectsOf(table, *row));
    const auto sets = row->find("sets");
    const std::string keys = array("NumberField", "Keys", joined(sets, "", [&](auto& set) { return fieldsOf(*row, set, 1); }));
    rows += fmt::format("  {{natureOf(Method::{0}), \"{0}\", {1}, \"{2}\", {3}, {4}, {5}, {6}}},\n", row->name, quoted(row->symbol),
                        signatureOf(*row), effects, !sets.empty(), keys, array("SlabField", "Slabs", slabs));
    const std::string filled = array("SlabField", "Fills", fills);
    mirrored += fmt::format("  {{{}, {}}},\n", filled, array("CompletionField", "Completions", completionsOf(*row)));
  }
  return fmt::format(
      "{}#include \"cuda-described.h\"\n#include \"vgpu/api/mirrored.h\"\n\nnamespace vgpu {{\n\nnamespace api {{\n\n"
      "namespace {{\n\n{}\n}}  // namespace\n\nconst MethodInfo methods[methodCount] = {{\n{}}};\n\n"
      "const MirroredMethod mirroredMethods[methodCount] = {{\n{}}};\n\n}}  // namespace api\n\n}}  // namespace vgpu\n",
      banner, arrays, rows, mirrored);
}

std::string emitEntries(const Table& table) {
  return forEntries(table, "ENTRY(symbol): what a session has.", [](auto& row) { return row.route ? entryLine(row) : ""; });
}

std::string emitAllEntries(const Table& table) {
  return forEntries(table, "ENTRY(symbol): what the driver exports, in every version.", entryLine);
}

std::string emitUnsupported(const Table& table) {
  const char* what = "UNSUPPORTED(symbol, why a session cannot have it, or nothing): every name that the driver exports.";
  return forEntries(table, what, [](auto& row) {
    std::string why = row.route == Route::forbid ? row.reason : "",
                line = fmt::format("UNSUPPORTED({}, \"{}\")\n", row.symbol, why);
    return row.flavour.empty() ? line : line + fmt::format("UNSUPPORTED({}_{}, \"{}\")\n", row.symbol, row.flavour, why);
  });
}

std::string emitPerThread(const Table& table) {
  return forEntries(table, "PER_THREAD(symbol, its flavour for per-thread default streams)", [](auto& row) {
    return row.flavour.empty() ? "" : fmt::format("PER_THREAD({0}, {0}_{1})\n", row.symbol, row.flavour);
  });
}

std::string emitHeaders(const Table& table) {
  std::string out = header("");
  out += "// By symbol.\ninline constexpr DriverEntry driverEntries[] = {\n";
  for (auto& row : table.rows)
    if (!row.symbol.empty()) out += fmt::format("  {{\"{}\", {}, {}}},\n", row.symbol, row.since, !row.flavour.empty());
  return out + "};\n\n}  // namespace vgpu::api\n";
}

}  // namespace vgpu::generator
