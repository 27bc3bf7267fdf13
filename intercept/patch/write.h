// Writing code: the only place where this library changes instructions of another object.
//
// Pages are made writable, written and made executable again; no page is ever both. The caller ensures that no thread runs the code
// meanwhile: the object is not initialised yet, or the process has one thread.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "intercept/patch/plan.h"

namespace vgpu::runtime {

/// Writes the jumps into the object loaded at `base`. All or nothing: returns the reason if it fails, else nothing.
std::string writeJumps(const image::Elf& file, uint64_t base, const std::vector<Jump>& jumps);

/// Replaces the function at `address`, which must do nothing but return, by a jump to `to`. Returns the reason if it fails, else nothing.
std::string replaceEmptyFunction(uint64_t address, void (*to)());

}  // namespace vgpu::runtime
