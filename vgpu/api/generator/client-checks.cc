// Emits the validation of a parameter, or of the object that it names.
#include <fmt/format.h>
#include <kj/debug.h>

#include <algorithm>
#include <map>
#include <span>

#include "client-half.h"

namespace vgpu::generator {

void ClientHalf::checkEnumeration(const Parameter& p) {
  if (auto values = checkedValuesOf(table, row, p))
    checks += fmt::format("    if (!({})) return {};\n", isAmong(p.name, values->values), values->error);
}

void ClientHalf::checkValue(const Parameter& p, const Clause& clause) {
  static const std::map<std::string, const char*> statements = {
      {"mask", "if (({subject} & ~static_cast<{type}>({value})) != 0) return {error};"},
      {"has", "if (({subject} & ({value})) == 0) return {error};"},
      {"below", "if ({subject} >= {value}) return {error};"},
      {"is", "if ({subject} != {value}) return {error};"},
      {"differs", "if ({subject} == {value}) return {error};"},
      {"differs \"\"", "if ({name} == nullptr || *{name} == 0) return {error};"},
      {"in", "if ({subject} < {value} || {subject} > {high}) return {error};"},
      {"among", "if ({allDiffer}) return {error};"},
      {"owns", "if (!ownsMemory(thread.session, {subject}, {value})) return {error};"},
      {"found", "auto {name}Found = {value}(thread, toWire({name}));\n    if (!{name}Found) return {error};"},
      {"passes", "if (CUresult refused = {value}) return refused;"},
      {"clamp", "{name} = std::clamp({name}, {value}, {high});"}};
  if (clause[1] == "=" || clause[1] == "valid" || clause[1] == "from" || clause[1] == "as") return;
  KJ_REQUIRE(clause.size() >= 3, "a parameter's clause needs a verb and a value", p.name.c_str());
  const std::string subject = translated(clause[0]);
  std::string value = translated(clause[2]), high = clause.size() > 3 ? translated(clause[3]) : "";
  size_t dots = clause[2].find("..");
  if (clause[1] == "in" && dots != std::string::npos) {
    value = clause[2].substr(0, dots);
    high = translated(clause[2].substr(dots + 2));
  }
  auto statement = statements.find(clause[2] == "\"\"" ? "differs \"\"" : clause[1]);
  KJ_REQUIRE(statement != statements.end() && (clause[1] != "in" || dots != std::string::npos),
             "a parameter's clause is valid, mask, has, in, among, below, is, differs, owns, clamp, found, passes, as or =",
             clause[1].c_str());
  std::span values(clause.begin() + 2, std::ranges::find(clause, "else"));
  std::string allDiffer = joined(values, " && ", [&](auto& each) { return fmt::format("{} != {}", subject, each); });
  checks +=
      fmt::format(fmt::runtime(fmt::format("    {}\n", statement->second)), fmt::arg("name", p.name), fmt::arg("type", p.type),
                  fmt::arg("subject", subject), fmt::arg("value", value), fmt::arg("high", high),
                  fmt::arg("allDiffer", allDiffer), fmt::arg("error", wordBehind(clause, "else", invalidValue)));
}

bool ClientHalf::isOfNull(const Clause& clause) { return clause.size() >= 3 && clause[1] == "differs" && clause[2] == "nullptr"; }

}  // namespace vgpu::generator
