// NVRTC and nvJitLink on a node whose devices are emulated (intercept/runtime/compilers.h): some of their functions are redirected to ours.
// If ours calls the original, the exported function must be a five-byte jump to its body, as all of nvJitLink's are (12.9 to 13.5): our
// jump replaces that jump, and the body stays intact. Nothing else in the libraries is changed, and they are unchanged on other nodes.
//
// Under the dynamic linker's lock, or while the process has one thread.
#pragma once
#include <optional>
#include <string>

#include "intercept/patch/linker.h"
#include "intercept/patch/plan.h"
#include "vgpu/image/elf.h"

namespace vgpu::runtime {

/// The plan for such a library on such a node; nothing for any other object. The plan's jump targets are valid until the process ends.
std::optional<Plan> planForCompiler(const image::Elf& file, const std::string& path, const LoadedObject& object);

}  // namespace vgpu::runtime
