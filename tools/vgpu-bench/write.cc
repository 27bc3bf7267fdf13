#include "tools/vgpu-bench/write.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace vgpu::bench {
namespace {

using nlohmann::json;

struct Scale {
  std::string_view unit;  // unit of the figure
  double least;           // the least median for which this scale is used
  double divisor;
  const char* shown;
};
constexpr Scale scales[] = {{"us", 1e6, 1e6, "s"},      {"us", 1e3, 1e3, "ms"}, {"us", 0, 1, "µs"},
                            {"KiB", 1024, 1024, "MiB"}, {"KiB", 0, 1, "KiB"},   {"%", 0, 1, "%"},
                            {"", 0, 1, ""}};

// "7.81 / 7.93 / 8.40 µs"
std::string shownSpread(const std::vector<double>& values, const std::string& unit) {
  if (values.empty()) return "–";
  Spread spread = spreadOf(values);
  auto* scale = std::ranges::find_if(
      scales, [&](const Scale& scale) { return scale.unit == unit && spread.median >= scale.least; });
  double divisor = scale == std::end(scales) ? 1 : scale->divisor;
  return fmt::format("{:.2f} / {:.2f} / {:.2f} {}", spread.least / divisor, spread.median / divisor,
                     spread.most / divisor, scale == std::end(scales) ? unit : scale->shown);
}

std::string shownWanted(const Row& row) {
  auto wanted = row.wanted();
  if (!wanted) return "";
  if (wanted->kind == Wanted::Kind::ratio) return fmt::format("≤ {:.2f}", wanted->limit);
  if (wanted->kind == Wanted::Kind::least) return fmt::format("≥ {:.0f} {}", wanted->limit, row.unit);
  return fmt::format("≤ +{:.0f} {}", row.unit == "KiB" ? wanted->limit / 1024 : wanted->limit,
                     row.unit == "KiB" ? "MiB" : row.unit);
}

const char* nameOf(Wanted::Kind kind) {
  switch (kind) {
    case Wanted::Kind::ratio: return "ratio";
    case Wanted::Kind::difference: return "difference";
    case Wanted::Kind::least: return "virtual";
  }
  return "";
}

std::string shownVerdict(const Row& row) {
  auto met = row.met();
  if (!met) return "";
  return *met ? "met" : "**missed**";
}

// Visible columns instead of bytes: counts bytes that do not continue a UTF-8 character.
size_t widthOf(const std::string& text) {
  return static_cast<size_t>(std::ranges::count_if(text, [](char c) { return (c & 0xc0) != 0x80; }));
}

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (char c : text) result += c == '"' ? std::string("\"\"") : std::string(1, c);
  return result + "\"";
}

json spreadJson(const std::vector<double>& values) {
  if (values.empty()) return nullptr;
  Spread spread = spreadOf(values);
  return {{"min", spread.least}, {"median", spread.median}, {"max", spread.most}, {"samples", values}};
}

template <typename T>
json orNull(const std::optional<T>& value) {
  return value ? json(*value) : json(nullptr);
}

json rowJson(const Row& row) {
  json result = {{"group", row.group}, {"name", row.name}, {"unit", row.unit}};
  result["native"] = spreadJson(row.native);
  result["virtual"] = spreadJson(row.virtualized);
  result["ratio"] = orNull(row.ratio());
  result["wanted"] = nullptr;
  if (auto wanted = row.wanted()) {
    result["wanted"] = {{wanted->kind == Wanted::Kind::least ? "least" : "most", wanted->limit}, {"of", nameOf(wanted->kind)}};
  }
  result["met"] = orNull(row.met());
  return result;
}

}  // namespace

std::string writeTable(const Results& results) {
  std::vector<std::vector<std::string>> cells = {
      {"case", "native: min / median / max", "virtual: min / median / max", "ratio", "wanted", ""}};
  for (const Row& row : results.rows) {
    auto ratio = row.ratio();
    cells.push_back({row.name, shownSpread(row.native, row.unit), shownSpread(row.virtualized, row.unit),
                     ratio ? fmt::format("{:.3f}", *ratio) : "–", shownWanted(row), shownVerdict(row)});
  }
  std::vector<size_t> widths(cells.front().size());
  for (auto& line : cells) {
    for (size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], widthOf(line[i]));
  }
  std::string text;
  for (size_t line = 0; line < cells.size(); ++line) {
    for (size_t i = 0; i < widths.size(); ++i) {
      text += fmt::format("| {}{:{}} ", cells[line][i], "", widths[i] - widthOf(cells[line][i]));
    }
    text += "|\n";
    if (line != 0) continue;
    for (size_t width : widths) text += fmt::format("|{:-<{}}", "", width + 2);
    text += "|\n";
  }
  return text;
}

std::string writeCsv(const Results& results) {
  std::string text =
      "group,name,unit,native_min,native_median,native_max,virtual_min,virtual_median,virtual_max,ratio,wanted,"
      "wanted_of,met\n";
  auto spread = [](const std::vector<double>& values) -> std::string {
    if (values.empty()) return ",,";
    Spread s = spreadOf(values);
    return fmt::format("{},{},{}", s.least, s.median, s.most);
  };
  for (const Row& row : results.rows) {
    auto ratio = row.ratio();
    auto wanted = row.wanted();
    auto met = row.met();
    text += fmt::format("{},{},{},{},{},{},{},{},{}\n", row.group, quoted(row.name), row.unit, spread(row.native),
                        spread(row.virtualized), ratio ? fmt::format("{}", *ratio) : "",
                        wanted ? fmt::format("{}", wanted->limit) : "",
                        wanted ? nameOf(wanted->kind) : "",
                        !met   ? ""
                        : *met ? "true"
                               : "false");
  }
  return text;
}

std::string writeJson(const Results& results) {
  json rows = json::array();
  for (const Row& row : results.rows) rows.push_back(rowJson(row));
  json all = {{"version", 1},           {"node", results.node},        {"rounds", results.rounds},
              {"quick", results.quick}, {"native", results.hasNative}, {"rows", rows}};
  return all.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

std::vector<std::string> groupsOf(const Results& results) {
  std::vector<std::string> groups;
  for (const Row& row : results.rows) {
    if (std::ranges::find(groups, row.group) == groups.end()) groups.push_back(row.group);
  }
  return groups;
}

}  // namespace vgpu::bench
