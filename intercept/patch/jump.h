// A jump that replaces the first bytes of a function.
#pragma once
#include <cstddef>
#include <cstdint>

#include "intercept/runtime/export-table.h"

namespace vgpu::runtime {

/// `jmp *0(%rip)` followed by the eight-byte target: reaches every address and changes no register.
constexpr size_t jumpBytes = 14;

struct Jump {
  const Export* to;
  uint64_t address;  ///< of the function in the file's address space
};

}  // namespace vgpu::runtime
