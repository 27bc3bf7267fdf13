// Every function that this library exports, by name: the replacements for a runtime that another object contains.
#pragma once
#include <span>

namespace vgpu::runtime {

struct Export {
  const char* name;
  void (*function)();  ///< used as an address only: the real signature is that of `name`
};

/// exports(): those of CUDA 13, sorted by name. exports12(): those for a program built with CUDA 12 (cuda12.cc). Valid as soon as the
/// dynamic linker has relocated this library, before any constructor.
std::span<const Export> exports();
std::span<const Export> exports12();

}  // namespace vgpu::runtime
