// What a device is connected to, as the NVML of its host says: between libcuda.so.1, which asks the worker, and libnvidia-ml.so.1.
#pragma once

#include <cstdint>

namespace vgpu {

struct DeviceLinks {
  struct Link {  // of NVLink, in the order of nvml.h's answers; a PCI address is the other end's
    uint32_t isActive, capabilities, version, remoteType, domain, bus, device, ids, subsystem;
  };
  static constexpr unsigned most = 18;  // NVML_NVLINK_MAX_LINKS
  // PCI Express now, and at best; 0: not known.
  uint32_t generation, width, bestGeneration, bestWidth;
  uint32_t count;  // of `links`
  Link links[most];
};

}  // namespace vgpu
