// NVRTC and nvJitLink run in the program unmodified. On a node whose devices are emulated, which run PTX only, a program that asks them for
// machine code gets PTX of the same code. Options, errors, logs and everything else are the libraries' own.
//
// Each library has a table of rows. A row with a function of ours redirects the library's function to it (intercept/patch/compiler.h), and
// ours calls the library's. A program may load the library of CUDA 12 and that of 13; each copy has its own instances of our functions.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

namespace vgpu::runtime {

constexpr size_t mostCopies = 2;

struct CompilerRow {
  const char* name;
  void (*note)(size_t copy, uint64_t address);  ///< stores the address of the copy's function; null: it is not needed
  void (*ours[mostCopies])();                   ///< called in place of the copy's function; null: it is not replaced
};
std::span<const CompilerRow> nvrtcRows();
std::span<const CompilerRow> nvJitLinkRows();

}  // namespace vgpu::runtime
