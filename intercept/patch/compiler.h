// NVRTC and nvJitLink on a node whose devices are emulated (intercept/runtime/compilers.h): the names of some of their functions lead to
// ours. Where ours call the function of that name themselves, the name has to be a jump of five bytes to it, as all of nvJitLink's
// are (12.9 to 13.5): ours is written over that jump, and the function stays as it is. Nothing else of the libraries is changed, and
// nowhere else.
//
// Under the linker's lock, or while the process has one thread.
#pragma once
#include <optional>
#include <string>

#include "intercept/patch/linker.h"
#include "intercept/patch/plan.h"
#include "vgpu/image/elf.h"

namespace vgpu::runtime {

/// The plan for such a library on such a node; nothing for any other object. The plan's targets are valid for the life of the process.
std::optional<Plan> planForCompiler(const image::Elf& file, const std::string& path, const LoadedObject& object);

}  // namespace vgpu::runtime
