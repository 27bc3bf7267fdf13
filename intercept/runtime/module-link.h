// Programs built with relocatable device code (nvcc -rdc=true) for a device on which their linked image cannot run.
#pragma once
#include "intercept/runtime/registry.h"

namespace vgpu::runtime {

/// Links the parts of a version-2 wrapper for the current context's device, as the driver would, and loads the result.
CUresult linkParts(const FatbinaryWrapper& wrapper, CUmodule& loaded);

}  // namespace vgpu::runtime
