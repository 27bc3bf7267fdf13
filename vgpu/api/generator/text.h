// Functions to take a table's text apart.
#pragma once

#include <algorithm>
#include <fstream>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "table.h"

namespace vgpu::generator {

std::string trimmed(const std::string& text);
// Splits the text at separators outside of parentheses.
std::vector<std::string> split(const std::string& text, char separator);
Clause words(const std::string& text);
// The words from `first` on, joined into one text.
std::string joined(const Clause& clause, size_t first);
// Joins `part` of each element, a member or a function, with the separator in between.
template <typename All, typename Part>
std::string joined(All&& all, const char* separator, Part part) {
  std::string text;
  for (bool isFirst = true; auto& each : all) {
    text += isFirst ? "" : separator;
    text += std::invoke(part, each);
    isFirst = false;
  }
  return text;
}
// The first element whose member equals `wanted`; nullptr if there is none.
template <typename Each>
const Each* findBy(const std::vector<Each>& all, std::string Each::*member, const std::string& wanted) {
  auto found = std::ranges::find(all, wanted, member);
  return found == all.end() ? nullptr : &*found;
}
// The text between the parenthesis at `open` and its closing one. Throws kj::Exception if there is none.
std::string parenthesised(const std::string& text, size_t open);
// COUNT of `name[COUNT]`, empty without brackets; and the name. Throws kj::Exception if a bracket is not closed.
std::string bracketed(const std::string& text);
inline std::string unbracketed(const std::string& text) { return text.substr(0, text.find('[')); }
// The word after `word`; `otherwise` if there is none.
std::string wordBehind(const Clause& clause, const std::string& word, const std::string& otherwise);
// COUNT of `COUNT-1`.
inline std::string countParameter(const std::string& count) { return count.substr(0, count.find('-')); }
inline bool isNumber(const std::string& text) { return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos; }
// `const char * name`.
Parameter readParameter(const std::string& text);

// The values that a parameter may have, and the error for any other; nothing if it is not an enumeration, or if the driver checks it.
struct CheckedValues {
  std::set<int64_t> values;
  std::string error = "CUDA_ERROR_INVALID_VALUE";
};
std::optional<CheckedValues> checkedValuesOf(const Table& table, const Row& row, const Parameter& p);
// A C++ expression that tells whether `value`, also C++, is one of them.
std::string isAmong(const std::string& value, const std::set<int64_t>& values);

// Iterates over a table's entries: a row or a line about the whole table, with the following lines that begin with spaces.
class TableText {
 public:
  // Throws kj::Exception if the file cannot be read.
  explicit TableText(const std::string& path);

  // Reads the next entry. Returns false at the end.
  bool next();
  static std::vector<std::string> clausesOf(const std::string& text);  // without empty ones

  std::string head,
      body;  // its first line; its clauses, joined by semicolons. A line with two spaces begins a clause, one with more continues the
             // previous line
  unsigned number = 0;  // of its first line

 private:
  std::ifstream file;
  std::string pending;
  unsigned at = 0;
};

}  // namespace vgpu::generator
