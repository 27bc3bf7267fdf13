// Where a file's functions begin, as its unwind table says: the table that linkers write, sorted, for the C++ runtime to search
// (PT_GNU_EH_FRAME; Linux Standard Base, "Exception Frames"). A file whose symbols were stripped has it still.
//
// As untrusted as the rest of the file; a view of it, as Elf is.
#pragma once

#include <cstdint>
#include <optional>

#include "vgpu/image/elf.h"

namespace vgpu::image {

class FunctionStarts {
 public:
  // Empty if the file has no such table, or one that is encoded in another way than linkers do for x86-64.
  explicit FunctionStarts(const Elf& file);

  size_t size() const { return rows.size(); }
  uint64_t operator[](size_t index) const { return base + static_cast<uint64_t>(int64_t{rows[index].start}); }
  // The last that begins at the address or before.
  std::optional<size_t> find(uint64_t address) const;

 private:
  struct Row {
    int32_t start, description;  // from the table's address on
  };
  uint64_t base = 0;
  Table<Row> rows;
};

}  // namespace vgpu::image
