// Finds the hand-written functions that serve only one entry.
#include <algorithm>
#include <cctype>
#include <map>
#include <regex>

#include "text.h"

namespace vgpu::generator {

namespace {

// A word of C++, with the text before and behind it up to the neighbouring words.
struct Word {
  std::string text, before, behind;
  bool isPart() const { return before.ends_with('.') || before.ends_with("->") || before.ends_with("::"); }
};

std::vector<Word> wordsOfCode(const std::string& text) {
  static const std::regex word("\\w+");
  std::vector<Word> all;
  for (std::sregex_iterator it(text.begin(), text.end(), word), end; it != end; ++it) {
    if (!all.empty()) all.back().behind = it->prefix();
    all.push_back({it->str(), it->prefix(), it->suffix()});
  }
  return all;
}

// The functions that a row's C++ names: those that it calls, and those that it passes as arguments. Members of an object or the session,
// and their accessors without arguments, are remembered state and do not count as functions.
class NamedFunctions {
 public:
  NamedFunctions(const Row& row, const std::string& text) : row(row), words(wordsOfCode(text)) {
    for (auto& p : row.parameters) others.insert({p.name, p.name + "Handle", p.name + "Info", p.name + "Found"});
    // The parameters of `[=](Thread& thread, uint64_t function) { … }`.
    for (size_t at = text.find("]("); at != std::string::npos; at = text.find("](", at + 1))
      for (auto& parameter : split(parenthesised(text, at + 1), ',')) others.insert(wordsOfCode(parameter).back().text);
  }

  // `passed`: whether a name that is not called may be a function.
  void addTo(std::set<std::string>& functions, bool passed) const {
    for (size_t i = 0; i < words.size(); ++i) {
      auto& [name, before, behind] = words[i];
      if (others.contains(name) || std::isdigit(static_cast<unsigned char>(name[0]))) continue;
      std::string object = words[i].isPart() ? objectBefore(i) : "";
      const bool isCalled = behind.starts_with('(') && (object.empty() || !behind.starts_with("()"));
      const bool endsArgument = behind.empty() || std::string(",)}").find(behind[0]) != std::string::npos;
      const bool isPassed = passed && object.empty() && std::islower(static_cast<unsigned char>(name[0])) && endsArgument;
      if (isCalled || isPassed) functions.insert(object.empty() ? name : object + "." + name);
    }
  }

 private:
  // virtualMemory for `session.virtualMemory.`; for a parameter its type; for an expression a dot.
  std::string objectBefore(size_t part) const {
    const std::string& before = words[part].before;
    if (part == 0 || (before != "." && before != "->" && before != "::")) return ".";
    const Word& object = words[part - 1];
    const Parameter* parameter = object.isPart() ? nullptr : row.findParameter(object.text);
    return parameter == nullptr ? object.text : parameter->type;
  }

  const Row& row;
  std::vector<Word> words;
  std::set<std::string> others{"return", "sizeof", "nullptr", "true", "false", "const"};  // names that are not functions
};

std::set<std::string> functionsOf(const Row& row) {
  std::set<std::string> functions;
  if (!row.clientGenerated()) return functions;
  NamedFunctions(row, row.alias).addTo(functions, true);
  for (auto& clause : row.clauses) {
    const bool isResult = clause.front() == "returns";
    NamedFunctions(row, joined(clause, isResult)).addTo(functions, isResult);
    if (clause.size() > 2 && clause[1] == "found") functions.insert(clause[2]);
  }
  return functions;
}

}  // namespace

std::string entryOf(const std::string& symbol) {
  size_t suffix = symbol.rfind("_v");
  return suffix != std::string::npos && suffix + 3 == symbol.size() ? symbol.substr(0, suffix) : symbol;
}

std::map<std::string, ByHand> halvesByHand(const Table& table) {
  std::map<std::string, ByHand> entries;
  std::map<std::string, std::set<std::string>> namers;
  std::set<std::string> symbols, ofKinds;  // ofKinds: entries by which objects are destroyed with their context
  for (auto& kind : table.kinds) NamedFunctions(Row{}, kind.ends + "(handle)").addTo(ofKinds, false);
  for (auto& row : table.rows) {
    if (!row.symbol.empty()) symbols.insert(row.symbol);
    if (!row.isSupported()) continue;
    ByHand& entry = entries[entryOf(row.symbol)];
    entry.client |= !row.clientGenerated();
    entry.worker |= row.onWire() && !row.workerGenerated();
    for (auto& function : functionsOf(row)) namers[function].insert(entryOf(row.symbol));
  }
  for (auto& [function, of] : namers)
    if (of.size() == 1 && !symbols.contains(function) && !ofKinds.contains(function))
      entries[*of.begin()].functions.push_back(function);
  for (auto& row : table.rows)
    for (auto& clause : row.find("serves")) entries.at(entryOf(clause.at(1))).worker = true;
  return entries;
}

}  // namespace vgpu::generator
