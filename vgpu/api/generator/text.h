// Pieces of a table's text.
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
// Pieces between separators that are in no parentheses.
std::vector<std::string> split(const std::string& text, char separator);
Clause words(const std::string& text);
// The words from `first` on, as one text.
std::string joined(const Clause& clause, size_t first);
// What `part` says of each, a member or a function, with the separator between.
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
// The first whose member is `wanted`; nullptr if there is none.
template <typename Each>
const Each* findBy(const std::vector<Each>& all, std::string Each::*member, const std::string& wanted) {
  auto found = std::ranges::find(all, wanted, member);
  return found == all.end() ? nullptr : &*found;
}
// What is between the parenthesis at `open` and the one that closes it. Throws kj::Exception if none does.
std::string parenthesised(const std::string& text, size_t open);
// COUNT of `name[COUNT]`, empty if there is none; and the name. Throws kj::Exception on a bracket that is not closed.
std::string bracketed(const std::string& text);
inline std::string unbracketed(const std::string& text) { return text.substr(0, text.find('[')); }
// The word behind `word`; `otherwise` if there is none.
std::string wordBehind(const Clause& clause, const std::string& word, const std::string& otherwise);
// COUNT of `COUNT-1`.
inline std::string countParameter(const std::string& count) { return count.substr(0, count.find('-')); }
inline bool isNumber(const std::string& text) { return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos; }
// `const char * name`.
Parameter readParameter(const std::string& text);

// The values that a parameter may have, and the error of any other; nothing of one that is no enumeration, or that the driver looks at
// itself.
struct CheckedValues {
  std::set<int64_t> values;
  std::string error = "CUDA_ERROR_INVALID_VALUE";
};
std::optional<CheckedValues> checkedValuesOf(const Table& table, const Row& row, const Parameter& p);
// C++ that says whether `value`, C++ too, is one of them.
std::string isAmong(const std::string& value, const std::set<int64_t>& values);

// A table's entries, one after the other: a row or a line about the whole table, and the lines behind it that begin with spaces.
class TableText {
 public:
  // Throws kj::Exception if the file cannot be read.
  explicit TableText(const std::string& path);

  // Reads the next one. False at the end.
  bool next();
  static std::vector<std::string> clausesOf(const std::string& text);  // those that are not empty

  std::string head,
      body;  // its first line; its clauses, between semicolons. Two spaces begin a clause, more continue the line before
  unsigned number = 0;  // of its first line

 private:
  std::ifstream file;
  std::string pending;
  unsigned at = 0;
};

}  // namespace vgpu::generator
