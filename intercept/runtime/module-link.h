// Linking for programs built with relocatable device code (nvcc -rdc=true), for a device on which their linked image cannot run.
#pragma once
#include <functional>

#include "intercept/runtime/registry.h"

namespace vgpu::runtime {

using Load = std::function<CUresult(const void* image)>;
/// Links the parts of a version-2 wrapper for the current context's device, as the driver would, and calls `load` with the result.
CUresult linkParts(const FatbinaryWrapper& wrapper, const Load& load);

}  // namespace vgpu::runtime
