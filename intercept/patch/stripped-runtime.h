// Finds the functions of a CUDA runtime in an object without symbols.
//
// A function of the runtime's API tells profilers its name (CUpti_CallbackData::functionName), so its code refers to that string, and the
// unwind table has the functions' start addresses. Functions that only compiled code calls (__cudaRegisterFatBinary, ...) have no such
// string; they lie in the runtime's single object file in the same order in all releases, around one with a name, and two of them confirm
// the order: they jump to functions that were found by name. docs/interposition.md lists the releases with which this was compared.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "vgpu/image/elf.h"

namespace vgpu::runtime {

struct RuntimeFunction {
  std::string_view name;  ///< points into the file's bytes, or is static
  uint64_t address;       ///< in the file's address space
  bool hasRoom;           ///< for a jump
};

/// Empty if the object has no runtime, or if anything is not as expected: either all functions are found, or none.
std::vector<RuntimeFunction> findStrippedRuntime(const image::Elf& file);

}  // namespace vgpu::runtime
