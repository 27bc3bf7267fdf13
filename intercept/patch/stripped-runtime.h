// The functions of a CUDA runtime in an object without its symbols.
//
// A function of the runtime's API tells profilers its name (CUpti_CallbackData::functionName), so its code leads to that string,
// and where functions begin the unwind table says. What compiled code calls besides (__cudaRegisterFatBinary, ...) tells no
// profiler; these functions lie in the runtime's one object file in the same order in all of its releases, around one that has a
// name, and two of them confirm the order: they jump to functions that were found by their names. docs/interposition.md has the
// releases with which this was compared.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "vgpu/image/elf.h"

namespace vgpu::runtime {

struct RuntimeFunction {
  std::string_view name;  ///< of the file's bytes, or for the life of the process
  uint64_t address;       ///< in the file's address space
  bool hasRoom;           ///< for a jump
};

/// Empty if the object has no runtime, or one of which anything is not as expected: all functions are found, or none.
std::vector<RuntimeFunction> findStrippedRuntime(const image::Elf& file);

}  // namespace vgpu::runtime
