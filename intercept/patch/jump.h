// A jump that is written over the beginning of a function.
#pragma once
#include <cstddef>
#include <cstdint>

#include "intercept/runtime/export-table.h"

namespace vgpu::runtime {

/// `jmp *0(%rip)` and the eight bytes of its target: reaches everywhere and changes no register.
constexpr size_t jumpBytes = 14;

struct Jump {
  const Export* to;
  uint64_t address;  ///< of the function in the file's address space
};

}  // namespace vgpu::runtime
