#include "entries.h"

#include <fmt/format.h>
#include <kj/debug.h>

#include <fstream>
#include <sstream>

namespace vgpu::generator {

namespace {

constexpr const char* banner = "// Generated from vgpu/api/driver.entries. Do not edit.\n";

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> pieces;
  std::istringstream stream(text);
  for (std::string piece; std::getline(stream, piece, separator);) pieces.push_back(piece);
  return pieces;
}

// `const char * name`.
CParameter readParameter(const std::string& text) {
  auto begin = text.find_first_not_of(' '), nameAt = text.find_last_of(" *") + 1;
  std::string type = text.substr(begin, nameAt - begin);
  while (!type.empty() && type.back() == ' ') type.pop_back();
  return {type, text.substr(nameAt)};
}

}  // namespace

Entries readEntries(const std::string& path) {
  std::ifstream file(path);
  KJ_REQUIRE(file.good(), "cannot read the table of entries", path.c_str());
  Entries entries;
  unsigned number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    if (line.empty() || line[0] == '#') continue;
    auto fields = split(line, '\t');
    if (fields.size() == 3) fields.push_back("");  // without parameters
    KJ_REQUIRE(fields.size() == 4, "a row has symbol, version, flavour and parameters between tabs", path.c_str(), number);
    Entry entry;
    entry.since = static_cast<unsigned>(std::stoul(fields[1]));
    if (fields[2] != "-") entry.flavour = fields[2].substr(0, fields[2].find(' '));
    for (auto& parameter : split(fields[3], ',')) entry.parameters.push_back(readParameter(parameter));
    KJ_REQUIRE(entries.emplace(fields[0], entry).second, "a symbol is there twice", fields[0].c_str());
  }
  return entries;
}

std::string emitEntriesHeader(const Entries& entries) {
  std::string out = banner;
  out += "#pragma once\n\nnamespace vgpu::api {\n\n// By symbol.\ninline constexpr DriverEntry driverEntries[] = {\n";
  for (auto& [symbol, entry] : entries) out += fmt::format("  {{\"{}\", {}, {}}},\n", symbol, entry.since, !entry.flavour.empty());
  return out + "};\n\n}  // namespace vgpu::api\n";
}

std::string emitUnsupported(const Entries& entries) {
  std::string out = banner;
  out += "// UNSUPPORTED(symbol): every name that the driver exports.\n";
  for (auto& [symbol, entry] : entries) {
    out += fmt::format("UNSUPPORTED({})\n", symbol);
    if (!entry.flavour.empty()) out += fmt::format("UNSUPPORTED({}_{})\n", symbol, entry.flavour);
  }
  return out;
}

std::string emitPerThread(const Entries& entries) {
  std::string out = banner;
  out += "// PER_THREAD(symbol, its flavour for per-thread default streams)\n";
  for (auto& [symbol, entry] : entries)
    if (!entry.flavour.empty()) out += fmt::format("PER_THREAD({0}, {0}_{1})\n", symbol, entry.flavour);
  return out;
}

}  // namespace vgpu::generator
