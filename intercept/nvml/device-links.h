// A device's links, as its host's NVML reports them; passed from libcuda.so.1, which asks the worker, to libnvidia-ml.so.1.
#pragma once

#include <cstdint>

#include "vgpu/base/nvml.h"

namespace vgpu {

struct DeviceLinks {
  // PCI Express: generation and width, current and best; 0: unknown.
  uint32_t generation, width, bestGeneration, bestWidth;
  uint32_t count;  // of `links`
  NvmlLink links[nvmlMostLinks];
};

}  // namespace vgpu
