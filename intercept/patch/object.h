// One loaded object: find its file, decide, patch.
#pragma once
#include <string>

#include "intercept/patch/linker.h"

namespace vgpu::runtime {

/// Whether it is the program itself, whose name in the linker's list is empty.
bool isProgram(const LoadedObject& object);

/// Redirects the functions of a CUDA runtime inside the object to ours. Returns nothing on success or if there is none, else a
/// message for the user: what was found and what to do.
std::string patchObject(const LoadedObject& object);

}  // namespace vgpu::runtime
