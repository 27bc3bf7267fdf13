// Start addresses of a file's functions, from its unwind table: the sorted table that linkers write for the C++ runtime to search
// (PT_GNU_EH_FRAME; Linux Standard Base, "Exception Frames"). A stripped file still has it.
//
// Untrusted like the rest of the file; a view of it, as Elf is.
#pragma once

#include <cstdint>
#include <optional>

#include "vgpu/image/elf.h"

namespace vgpu::image {

class FunctionStarts {
 public:
  // Empty if the file has no such table, or if its encoding is not the one that linkers use for x86-64.
  explicit FunctionStarts(const Elf& file);

  size_t size() const { return rows.size(); }
  uint64_t operator[](size_t index) const { return base + static_cast<uint64_t>(int64_t{rows[index].start}); }
  // The index of the last function that begins at or before the address.
  std::optional<size_t> find(uint64_t address) const;

 private:
  struct Row {
    int32_t start, description;  // relative to the table's address
  };
  uint64_t base = 0;
  Table<Row> rows;
};

}  // namespace vgpu::image
