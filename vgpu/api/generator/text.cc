#include "text.h"

#include <fmt/format.h>
#include <kj/debug.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace vgpu::generator {

std::string trimmed(const std::string& text) {
  auto begin = text.find_first_not_of(" \t"), end = text.find_last_not_of(" \t");
  return begin == std::string::npos ? "" : text.substr(begin, end - begin + 1);
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> pieces;
  std::string piece;
  int depth = 0;
  for (char c : text) {
    depth += (c == '(') - (c == ')');
    if (c == separator && depth == 0) {
      pieces.push_back(trimmed(piece));
      piece.clear();
    } else {
      piece += c;
    }
  }
  if (!trimmed(piece).empty()) pieces.push_back(trimmed(piece));
  return pieces;
}

Clause words(const std::string& text) {
  Clause found;
  for (auto& word : split(text, ' '))
    if (!word.empty()) found.push_back(word);
  return found;
}

std::string joined(const Clause& clause, size_t first) {
  std::string text;
  for (size_t i = first; i < clause.size(); ++i) text += (i == first ? "" : " ") + clause[i];
  return text;
}

std::string parenthesised(const std::string& text, size_t open) {
  int depth = 0;
  for (size_t at = open; at < text.size(); ++at) {
    depth += (text[at] == '(') - (text[at] == ')');
    if (depth == 0) return text.substr(open + 1, at - open - 1);
  }
  KJ_FAIL_REQUIRE("a parenthesis is not closed", text.c_str());
}

std::string bracketed(const std::string& text) {
  size_t open = text.find('[');
  if (open == std::string::npos) return "";
  KJ_REQUIRE(text.back() == ']', "a bracket is not closed", text.c_str());
  return text.substr(open + 1, text.size() - open - 2);
}

std::string wordBehind(const Clause& clause, const std::string& word, const std::string& otherwise) {
  auto found = std::ranges::find(clause, word);
  return clause.end() - found < 2 ? otherwise : found[1];
}

Parameter readParameter(const std::string& text) {
  auto nameAt = text.find_last_of(" *") + 1;
  return {trimmed(text.substr(0, nameAt)), text.substr(nameAt)};
}

TableText::TableText(const std::string& path) : file(path) { KJ_REQUIRE(file.good(), "cannot read the table", path.c_str()); }

std::vector<std::string> TableText::clausesOf(const std::string& text) {
  auto clauses = split(text, ';');
  std::erase(clauses, "");
  return clauses;
}

bool TableText::next() {
  std::string text;
  while (pending.empty() && std::getline(file, text)) {
    ++at;
    if (!text.empty() && text[0] != '#') pending = text;
  }
  if (pending.empty()) return false;
  number = at;
  head = std::exchange(pending, "");
  body.clear();
  while (std::getline(file, text)) {
    ++at;
    if (trimmed(text).empty() || trimmed(text)[0] == '#') continue;
    if (text[0] != ' ') {
      pending = text;
      break;
    }
    bool continues = text.starts_with("   ");
    (continues && body.empty() ? head : body) += (continues ? " " : "; ") + trimmed(text);
  }
  return true;
}

std::optional<CheckedValues> checkedValuesOf(const Table& table, const Row& row, const Parameter& p) {
  const VendorType* type = table.types.find(p.type);
  if (type == nullptr || type->what != VendorType::enumeration) return std::nullopt;
  CheckedValues checked;
  for (auto& clause : row.find(p.name)) {
    if (clause.at(1) == "=") continue;
    if (clause[1] != "valid" || wordBehind(clause, "valid", "") == "anything") return std::nullopt;
    checked.error = wordBehind(clause, "else", checked.error);
  }
  for (auto& [name, value] : type->values) checked.values.insert(value);
  return checked;
}

std::string isAmong(const std::string& value, const std::set<int64_t>& values) {
  std::string ranges;
  for (auto first = values.begin(); first != values.end();) {
    auto last = first;
    while (std::next(last) != values.end() && *std::next(last) == *last + 1) ++last;
    ranges += fmt::format("{}isWithin({}, {}, {})", ranges.empty() ? "" : " || ", value, *first, *last);
    first = std::next(last);
  }
  return ranges;
}

}  // namespace vgpu::generator
