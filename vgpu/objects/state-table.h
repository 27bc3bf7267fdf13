// What a snapshot keeps of objects besides their recipes: one table per kind, one row per object. A kind's module defines its columns
// (stub/worker/kinds/); here a row is a list of cells.
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

// Whether a row has these columns, one letter each: n number, t time in milliseconds, s text.
inline bool hasColumns(const Row& row, std::string_view columns) {
  constexpr std::string_view types = "nts";
  if (row.size() != columns.size()) return false;
  for (size_t i = 0; i < row.size(); ++i)
    if (row[i].index() != types.find(columns[i])) return false;
  return true;
}

// These throw std::bad_variant_access if the cell is of another type; callers check the row against its kind's columns first.
inline uint64_t numberIn(const Row& row, size_t column) { return std::get<uint64_t>(row[column]); }
inline double timeIn(const Row& row, size_t column) { return std::get<double>(row[column]); }
inline const std::string& textIn(const Row& row, size_t column) { return std::get<std::string>(row[column]); }

}  // namespace vgpu
