// Emits rows for the two interpreters, the faces' exports, and what compares both with the vendor's headers.
#include <fmt/format.h>
#include <kj/debug.h>

#include "library-table.h"
#include "text.h"

namespace vgpu::generator {

using api::Argument, api::Does, api::TypedBy;

namespace {

constexpr const char* libraryBanner = "// Generated from vgpu/api/cublas.table. Do not edit.\n";

// FNV-1a, 64 bits (www.isthe.com/chongo/tech/comp/fnv).
uint64_t digestOf(const std::string& text) {
  uint64_t digest = 0xcbf29ce484222325;
  for (unsigned char c : text) digest = (digest ^ c) * 0x100000001b3;
  return digest;
}

constexpr const char *argumentNames[] = {"value", "object", "made", "place", "stream", "address", "input", "output", "update"},
                     *doesNames[] = {"work", "query", "set", "create", "destroy", "recall"},
                     *typedByNames[] = {"nothing", "dataType", "computeType", "object"};
std::string nameOf(Argument what) { return argumentNames[static_cast<size_t>(what)]; }
std::string nameOf(Does does) { return doesNames[static_cast<size_t>(does)]; }
std::string nameOf(TypedBy typed) { return typedByNames[static_cast<size_t>(typed)]; }

std::string argumentsOf(const LibraryRow& row) {
  std::string out;
  for (auto& p : row.parameters) {
    auto& a = p.argument;
    out += fmt::format("{{Argument::{}, {}, TypedBy::{}, {}, {}, {}, {}, {}, {}, {}}}, ", nameOf(a.what), a.bytes,
                       nameOf(a.typedBy), a.type, a.resultType, a.count, a.times, a.hostModes, a.unusedModes, a.objectType);
  }
  return out;
}

std::string notesOf(const LibraryRow& row) {
  std::string out;
  for (auto& n : row.notes)
    out += fmt::format("{{{}, Member{{{}}}, {}, {}, {}, {}}}, ", n.holdsObject, static_cast<unsigned>(n.member), n.from,
                       n.condition, n.value, n.objectType);
  return out;
}

// How a face declares a parameter: as in the header, without including the header.
std::string declarationOf(const LibraryTable& table, const LibraryParameter& p) {
  bool isAddress = p.isPointer() || p.type == "cudaStream_t" || table.findObject(p.type) != nullptr;
  const char* type = isAddress ? p.isConst() ? "const void*" : "void*" : table.bytesOf(p.type) == 8 ? "int64_t" : "int";
  return fmt::format("{} {}", type, p.name);
}

std::string prototypeOf(const LibraryTable& table, const LibraryRow& row) {
  auto parameter = [&](auto& p) { return fmt::format("[[maybe_unused]] {}", declarationOf(table, p)); };
  std::string result = row.result.empty() ? "int" : row.result == "unsigned int" ? "unsigned" : row.result;
  return fmt::format("FACE {} {}({})", result, row.symbol, joined(row.parameters, ", ", parameter));
}

constexpr const char* exportHead =
    "\n#include <bit>\n#include <cstddef>\n#include <cstdint>\n\n#define FACE extern \"C\" "
    "__attribute__((visibility(\"default\")))\n\n";

}  // namespace

std::string emitLibraryRows(const LibraryTable& table) {
  std::string arrays, rows;
  std::map<std::string, unsigned> known;  // many entries have equal arguments
  auto arrayOf = [&](const char* type, const char* prefix, const std::string& content) -> std::string {
    if (content.empty()) return "{}";
    auto [found, isNew] = known.emplace(content, static_cast<unsigned>(known.size()));
    if (isNew) arrays += fmt::format("constexpr {} {}{}[] = {{{}}};\n", type, prefix, found->second, content);
    return fmt::format("{}{}", prefix, found->second);
  };
  for (auto& row : table.rows) {
    if (row.answered != Answered::called) continue;
    rows += fmt::format("    {{\"{}\", {:#x}u, {}, Does::{}, {}, {}, {}, {}, {:#x}, {}, {}, {}}},\n", row.symbol,
                        digestOf(row.signature()), row.library, nameOf(row.does), row.result.empty(), row.modeObject,
                        row.streamFrom, row.recalled, row.keys, row.askedOnce,
                        arrayOf("LibraryArgument", "arguments", argumentsOf(row)), arrayOf("LibraryNote", "notes", notesOf(row)));
  }
  std::string objects, libraries;
  for (auto& object : table.objects)
    objects += fmt::format("    {{\"{}\", {}, {}, {}}},\n", object.type, object.busy, table.placeOf(object.also),
                           object.structure.empty() ? 0 : table.structures.at(object.structure));
  for (auto& library : table.libraries) libraries += fmt::format("    {{\"{}\", \"{}\"}},\n", library.name, library.soname);
  auto status = [&](const char* name) {
    KJ_REQUIRE(table.statuses.contains(name), "the table names no such status", name);
    return table.statuses.at(name);
  };
  return fmt::format(
      "{}#include \"vgpu/api/library.h\"\n\nnamespace vgpu::api {{\n\nnamespace {{\n\n{}\nconstexpr LibraryEntry entries[] = "
      "{{\n{}}};\n\nconstexpr ObjectType objects[] = {{\n{}}};\n\nconstexpr Library all[] = {{\n{}}};\n\n}}  // namespace\n\n"
      "constinit const std::span<const LibraryEntry> libraryEntries = entries;\n"
      "constinit const std::span<const ObjectType> objectTypes = objects;\n"
      "constinit const std::span<const Library> libraries = all;\n"
      "constinit const LibraryStatus libraryStatus = {{{}, {}, {}, {}, {}, {}}};\n\n}}  // namespace vgpu::api\n",
      libraryBanner, arrays, rows, objects, libraries, status("absent"), status("memory"), status("invalid"), status("failed"),
      status("internal"), status("unsupported"));
}

std::string emitLibraryExports(const LibraryTable& table, unsigned library) {
  std::string out = libraryBanner;
  out += exportHead;
  out +=
      "// The place of an entry among `libraryEntries`, and its arguments as words. The status, or what else it returns.\n"
      "extern \"C\" uint64_t cuVgpuCallLibrary(unsigned entry, uint64_t* words);\n\n"
      "static inline uint64_t word(const void* pointer) { return std::bit_cast<uint64_t>(pointer); }\n"
      "static inline uint64_t word(int64_t number) { return static_cast<uint64_t>(number); }\n"
      "static inline uint64_t word(int number) { return static_cast<uint32_t>(number); }\n\n";
  unsigned place = 0;
  for (auto& row : table.rows) {
    if (row.answered != Answered::called) continue;
    unsigned index = place++;
    if (row.library != library) continue;
    std::string words = joined(row.parameters, ", ", [](auto& p) { return fmt::format("word({})", p.name); });
    out += fmt::format("{} {{\n  uint64_t words[] = {{{}}};\n  return static_cast<{}>(cuVgpuCallLibrary({}, words));\n}}\n",
                       prototypeOf(table, row), words.empty() ? "0" : words, row.result.empty() ? "int" : row.result, index);
  }
  return out;
}

std::string emitLibraryAnswers(const LibraryTable& table, unsigned library) {
  std::string out = libraryBanner;
  out += "#include \"intercept/libraries/faces/shared.h\"\n";
  out += exportHead;
  out += "using namespace vgpu::client::faces;\n\n";
  for (auto& row : table.rows) {
    if (row.library != library || row.answered == Answered::called || row.answered == Answered::byHand) continue;
    std::string body, value = row.answer;
    if (row.answered == Answered::refuse) value = fmt::format("refuse(\"{}\")", row.symbol);
    for (auto& clause : row.clauses)
      body += fmt::format("  if ({0} != nullptr) *static_cast<decltype({1})*>({0}) = {1};\n", clause[0], clause[2]);
    out += fmt::format("{} {{\n{}  return {};\n}}\n", prototypeOf(table, row), body, value);
  }
  for (auto& name : table.libraries[library].undeclared)
    out += fmt::format("FACE int {0}() {{ return refuse(\"{0}\"); }}\n", name);
  return out;
}

std::string emitLibraryMap(const LibraryTable& table, unsigned library) {
  auto& it = table.libraries[library];
  std::string names;
  for (auto& row : table.rows)
    if (row.library == library) names += fmt::format("    {};\n", row.symbol);
  for (auto& name : it.undeclared) names += fmt::format("    {};\n", name);
  return fmt::format("{} {{\n  global:\n{}  local: *;\n}};\n", it.soname, names);
}

std::string emitLibraryParity(const LibraryTable& table) {
  std::string out = libraryBanner, includes;
  for (auto& library : table.libraries) includes += fmt::format("#include <{}>\n", library.header);
  out += "// Compiled, never run: prototypes and sizes of the rows are those of the headers.\n#include <type_traits>\n\n" +
         includes + "\n";
  for (auto& [name, bytes] : table.structures) out += fmt::format("static_assert(sizeof({}) == {});\n", name, bytes);
  for (auto& object : table.objects) out += fmt::format("static_assert(std::is_pointer_v<{}>);\n", object.type);
  for (auto& row : table.rows) {
    if (!row.isDeclared) continue;
    out += fmt::format("[[maybe_unused]] constexpr auto check_{0} = static_cast<{1} (*)({2})>(&::{0});\n", row.symbol,
                       row.result.empty() ? "cublasStatus_t" : row.result, joined(row.parameters, ", ", &LibraryParameter::type));
    if (row.answered != Answered::called) continue;
    for (auto& p : row.parameters) {
      auto& a = p.argument;
      if (a.what == Argument::value)
        out += fmt::format("static_assert(sizeof({}) == {} && !std::is_floating_point_v<{}>);\n", p.type, a.bytes, p.type);
      bool isSized = (isRead(a.what) || isWritten(a.what)) && p.pointee() != "void";
      if (isSized) out += fmt::format("static_assert(sizeof({}) == {});\n", p.pointee(), a.bytes);
    }
  }
  return out;
}

std::string emitLibraryCoverage(const LibraryTable& table) {
  constexpr const char* ways[] = {"by its row", "answered by its row", "a function of several entries", "by hand", "refused"};
  size_t count[5] = {};
  std::string rows;
  for (auto& row : table.rows) {
    ++count[static_cast<size_t>(row.answered)];
    rows += fmt::format("| `{}` | {} | {} |\n", row.symbol,
                        row.answered == Answered::called ? nameOf(row.does) : ways[static_cast<size_t>(row.answered)],
                        row.answered == Answered::called ? "" : row.answer);
  }
  return fmt::format(
      "# Entries of cuBLAS and cuBLASLt\n\nGenerated from `vgpu/api/cublas.table`.\n\n{} entries are supported. By hand: {} "
      "({:.1f} %). {} "
      "others are functions of several entries, {} are answered by their rows alone, {} refused.\n\n| entry | does | how "
      "|\n|---|---|---|\n{}",
      table.rows.size() - count[4], count[3], 100.0 * static_cast<double>(count[3]) / static_cast<double>(table.rows.size()),
      count[2], count[1], count[4], rows);
}

}  // namespace vgpu::generator
