// NVML of this host (libnvidia-ml.so.1), loaded and initialized at first use (which takes tens of milliseconds) and kept until the process
// ends. Not every toolkit has its header, so each caller declares the type of the function that it calls. Any thread.
#pragma once

#include <cstdint>

namespace vgpu {

constexpr int nvmlSuccess = 0;

// The NVML function `name`; nullptr if the host has no working NVML, or an older one without that function.
void* nvmlFunction(const char* name);

// nvmlFieldValue_t, for fields whose values are unsigned numbers: `value` is the member of its union for those.
struct NvmlField {
  unsigned field, scope;
  long long timestamp, latency;
  int type, result;
  union {
    unsigned value;
    unsigned long long whole;
  };
};
// Field numbers, and the number of the type of their values.
constexpr unsigned nvmlLinkCount = 91, nvmlLinkState = 165, nvmlLinkVersion = 166;
constexpr int nvmlUnsigned = 1;

// nvmlPciInfo_t
struct NvmlPci {
  char legacy[16];
  unsigned domain, bus, device, ids, subsystem;
  char id[32];
};

// Properties of one NVLink. `capabilities` has one bit per capability (nvmlNvLinkCapability_t); the PCI address is that of the link's other
// end.
struct NvmlLink {
  uint32_t isActive, capabilities, version, remoteType, domain, bus, device, ids, subsystem;
};
constexpr unsigned nvmlMostLinks = 18, nvmlCapabilities = 6;

}  // namespace vgpu
