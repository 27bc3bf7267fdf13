// What a device is connected to, as the NVML of its host says: between libcuda.so.1, which asks the worker, and libnvidia-ml.so.1.
#pragma once

#include <cstdint>

#include "vgpu/base/nvml.h"

namespace vgpu {

struct DeviceLinks {
  // PCI Express now, and at best; 0: not known.
  uint32_t generation, width, bestGeneration, bestWidth;
  uint32_t count;  // of `links`
  NvmlLink links[nvmlMostLinks];
};

}  // namespace vgpu
