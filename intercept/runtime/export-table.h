// Every function that this library exports, by name: the replacements for a runtime found in another object.
#pragma once
#include <span>

namespace vgpu::runtime {

struct Export {
  const char* name;
  void (*function)();  ///< only an address: the signature is that of the name
};

/// Sorted by name, of CUDA 13; and what a program built with CUDA 12 gets (cuda12.cc). Valid as soon as the dynamic linker has
/// relocated this library, before any constructor.
std::span<const Export> exports();
std::span<const Export> exports12();

}  // namespace vgpu::runtime
