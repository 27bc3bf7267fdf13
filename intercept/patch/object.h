// One loaded object: finds its file, decides, patches.
#pragma once
#include <string>

#include "intercept/patch/linker.h"

namespace vgpu::runtime {

/// Whether it is the program itself, which has an empty name in the linker's list.
bool isProgram(const LoadedObject& object);

/// Redirects the functions of a CUDA runtime inside the object to ours. Returns nothing on success or if there is no runtime, else a
/// message for the user: what was found and what to do.
std::string patchObject(const LoadedObject& object);

}  // namespace vgpu::runtime
