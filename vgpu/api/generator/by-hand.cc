// Which functions people write for one entry alone.
#include <algorithm>
#include <cctype>
#include <map>

#include "text.h"

namespace vgpu::generator {

namespace {

bool isOfName(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

// The functions that a row's C++ names: those it calls, and those it hands to what it calls. What an object or the session keeps,
// and what answers from that without arguments, is remembered state and no function.
class NamedFunctions {
 public:
  NamedFunctions(const Row& row, std::string text) : row(row), text(std::move(text)) {
    for (auto& p : row.parameters) local.insert({p.name, p.name + "Handle", p.name + "Info", p.name + "Found"});
    findLambdas();
  }

  // `passed`: whether a name alone may be a function.
  void addTo(std::set<std::string>& functions, bool passed) const {
    for (size_t at = 0; at < text.size();) {
      if (!isOfName(text[at])) {
        ++at;
        continue;
      }
      size_t begin = at;
      while (at < text.size() && isOfName(text[at])) ++at;
      std::string name = text.substr(begin, at - begin), object = objectBefore(begin);
      if (local.contains(name) || std::isdigit(static_cast<unsigned char>(name[0])) || isOfLanguage(name)) continue;
      const bool isCalled = startsWith(at, "(") && (object.empty() || !startsWith(at, "()"));
      const bool isPassed = passed && object.empty() && std::islower(static_cast<unsigned char>(name[0])) && endsArgument(at);
      if (isCalled || isPassed) functions.insert(object.empty() ? name : object + "." + name);
    }
  }

 private:
  bool startsWith(size_t at, const char* what) const { return text.compare(at, std::char_traits<char>::length(what), what) == 0; }
  bool endsArgument(size_t at) const { return at == text.size() || text[at] == ',' || text[at] == ')' || text[at] == '}'; }

  // virtualMemory of `session.virtualMemory.` before `at`; of a parameter its type; of an expression a dot.
  std::string objectBefore(size_t at) const {
    size_t end = at;
    if (end > 0 && text[end - 1] == '.') {
      end -= 1;
    } else if (end > 1 && (text.substr(end - 2, 2) == "->" || text.substr(end - 2, 2) == "::")) {
      end -= 2;
    }
    if (end == at) return "";
    size_t begin = end;
    while (begin > 0 && isOfName(text[begin - 1])) --begin;
    std::string object = text.substr(begin, end - begin);
    const bool isPartOf = begin > 0 && (text[begin - 1] == '.' || text[begin - 1] == '>');
    const Parameter* parameter = isPartOf ? nullptr : row.findParameter(object);
    return object.empty() ? "." : parameter == nullptr ? object : parameter->type;
  }

  // The parameters of `[=](Thread& thread, uint64_t function) { … }` are no functions.
  void findLambdas() {
    for (size_t at = text.find("]("); at != std::string::npos; at = text.find("](", at + 1))
      for (auto& parameter : split(parenthesised(text, at + 1), ',')) {
        size_t begin = parameter.size();
        while (begin > 0 && isOfName(parameter[begin - 1])) --begin;
        local.insert(parameter.substr(begin));
      }
  }

  static bool isOfLanguage(const std::string& word) {
    return word == "return" || word == "sizeof" || word == "nullptr" || word == "true" || word == "false" || word == "const";
  }

  const Row& row;
  std::string text;
  std::set<std::string> local;
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
  std::set<std::string> symbols, ofKinds;  // ofKinds: by which objects end with their context
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
    if (of.size() == 1 && !symbols.contains(function) && !ofKinds.contains(function)) entries[*of.begin()].functions.push_back(function);
  for (auto& row : table.rows)
    for (auto& clause : row.find("serves")) entries.at(entryOf(clause.at(1))).worker = true;
  return entries;
}

}  // namespace vgpu::generator
