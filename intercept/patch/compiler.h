// NVRTC, a compiler that runs in the program as it is, on a node whose devices are emulated: these run PTX alone. So a program
// that asks it for machine code (nvrtcGetCUBIN) gets the PTX of the same compilation, by a jump from the one function to the
// other of that very library. Nothing else of it is changed, and nowhere else.
//
// Under the linker's lock, or while the process has one thread.
#pragma once
#include <optional>
#include <string>

#include "intercept/patch/linker.h"
#include "intercept/patch/plan.h"
#include "vgpu/image/elf.h"

namespace vgpu::runtime {

/// The plan for such a library on such a node; nothing for any other object. The plan's targets are valid until the next call.
std::optional<Plan> planForCompiler(const image::Elf& file, const std::string& path, const LoadedObject& object);

}  // namespace vgpu::runtime
