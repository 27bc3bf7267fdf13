// The plan for an object in which the CUDA runtime may be linked statically.
//
// Decides from the file alone and touches no memory of the process; patch-write-unsafe.cc carries a plan out.
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
  std::vector<Jump> jumps;  ///< of a patch, in the order of the addresses
  std::string reason;       ///< of a refusal: what was found and what the user can do
};

/// `path` only names the object in messages; what is exported is sorted by name, for a runtime of CUDA 13 and for one of CUDA 12.
Plan planFor(const image::Elf& file, const std::string& path, std::span<const Export> exports, std::span<const Export> exports12);

bool isFunction(const Elf64_Sym& symbol);
/// Where the functions of a table begin, in order.
std::vector<uint64_t> startsIn(const image::Elf& file, const Elf64_Shdr& table);
/// True if a jump fits at the function: inside it, or over the padding behind it when nothing else starts there.
bool hasRoom(const image::Elf& file, const Elf64_Sym& function, const std::vector<uint64_t>& starts);

/// The same for a library that has a face, whose functions are `exports`. Names of the library's that share their code with one of
/// these are of no use to a program.
Plan planForLibrary(const image::Elf& file, const std::string& path, std::span<const Export> exports);

}  // namespace vgpu::runtime
