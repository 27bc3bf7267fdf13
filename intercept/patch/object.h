// One loaded object: find its file, decide, patch.
#pragma once
#include <string>

#include "intercept/patch/linker.h"

namespace vgpu::runtime {

/// Whether it is the program itself: the linker knows it under an empty name.
bool isProgram(const LoadedObject& object);

/// Puts our functions in place of those of a CUDA runtime inside the object. Returns nothing when that is done or there
/// was none, else a line for the person: what was found and what to do.
std::string patchObject(const LoadedObject& object);

}  // namespace vgpu::runtime
