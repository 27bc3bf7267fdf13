// NVRTC and nvJitLink, which run in the program as they are, on a node whose devices are emulated: these run PTX alone. So a program
// that asks them for machine code gets PTX of the same code. Options, errors, logs and all else are the libraries' own.
//
// A library is known by its rows: those with a function of ours lead there (intercept/patch/compiler.h), and ours call the library's.
// A program may have that of CUDA 12 and that of 13; each copy has functions of ours for itself.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

namespace vgpu::runtime {

constexpr size_t mostCopies = 2;

struct CompilerRow {
  const char* name;
  void (*note)(size_t copy, uint64_t address);  ///< where the copy's function is; null: it is not needed
  void (*ours[mostCopies])();                   ///< called in its place; null: none is
};
std::span<const CompilerRow> nvrtcRows();
std::span<const CompilerRow> nvJitLinkRows();

}  // namespace vgpu::runtime
