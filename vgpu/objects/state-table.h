// What a snapshot keeps of objects besides their recipes: tables of rows, one table a kind, one row an object. A kind's columns
// are its module's (stub/worker/kinds/); here a row is cells.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace vgpu {

using Cell = std::variant<uint64_t, double, std::string>;
using Row = std::vector<Cell>;
using Rows = std::vector<Row>;
using StateTables = std::map<std::string, Rows>;  // by the kind's name

// Whether a row has these columns, a letter each: n a number, t a time in milliseconds, s text.
inline bool hasColumns(const Row& row, std::string_view columns) {
  constexpr std::string_view types = "nts";
  if (row.size() != columns.size()) return false;
  for (size_t i = 0; i < row.size(); ++i)
    if (row[i].index() != types.find(columns[i])) return false;
  return true;
}

// Throw std::bad_variant_access if the cell is of another type: a row is checked against its kind's columns before.
inline uint64_t numberIn(const Row& row, size_t column) { return std::get<uint64_t>(row[column]); }
inline double timeIn(const Row& row, size_t column) { return std::get<double>(row[column]); }
inline const std::string& textIn(const Row& row, size_t column) { return std::get<std::string>(row[column]); }

}  // namespace vgpu
