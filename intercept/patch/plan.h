// The plan for an object in which the CUDA runtime may be linked statically.
//
// Decides from the file alone and accesses no memory of the process; write-unsafe.cc carries out the plan.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "intercept/patch/jump.h"
#include "intercept/runtime/export-table.h"
#include "vgpu/image/elf.h"

namespace vgpu::runtime {

struct Plan {
  enum class Verdict { leave, patch, refuse };
  Verdict verdict = Verdict::leave;
  std::vector<Jump> jumps;  ///< for `patch`, sorted by address
  std::string reason;       ///< for `refuse`: what was found and what the user can do
};

/// `path` is only used in messages. The exports are sorted by name: those for a runtime of CUDA 13 and those for one of CUDA 12.
Plan planFor(const image::Elf& file, const std::string& path, std::span<const Export> exports, std::span<const Export> exports12);

bool isFunction(const Elf64_Sym& symbol);
/// The start addresses of a symbol table's functions, sorted.
std::vector<uint64_t> startsIn(const image::Elf& file, const Elf64_Shdr& table);
/// True if a jump fits at the function: inside it, or over the padding after it if no other function starts there.
bool hasRoom(const image::Elf& file, const Elf64_Sym& function, const std::vector<uint64_t>& starts);

/// The same for a library that has a face with the functions `exports`. Names of the library that share their code with one of these are
/// not needed by programs.
Plan planForLibrary(const image::Elf& file, const std::string& path, std::span<const Export> exports);

}  // namespace vgpu::runtime
