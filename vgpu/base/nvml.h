// NVML of this host (libnvidia-ml.so.1), loaded and initialized when it is first asked, until the process ends: that takes tens of
// milliseconds. Its header is not part of every toolkit, so who calls a function knows its type. Any thread.
#pragma once

#include <cstdint>

namespace vgpu {

constexpr int nvmlSuccess = 0;

// The function of that name; nullptr if the host has no NVML that works, or an older one without it.
void* nvmlFunction(const char* name);

// nvmlFieldValue_t, of which `value` is a union: of fields whose values are unsigned numbers.
struct NvmlField {
  unsigned field, scope;
  long long timestamp, latency;
  int type, result;
  union {
    unsigned value;
    unsigned long long whole;
  };
};
// Numbers of fields, and of the type of their values.
constexpr unsigned nvmlLinkCount = 91, nvmlLinkState = 165, nvmlLinkVersion = 166;
constexpr int nvmlUnsigned = 1;

// nvmlPciInfo_t
struct NvmlPci {
  char legacy[16];
  unsigned domain, bus, device, ids, subsystem;
  char id[32];
};

// What is known of a link of NVLink; capabilities are a bit each (nvmlNvLinkCapability_t), the PCI address is the other end's.
struct NvmlLink {
  uint32_t isActive, capabilities, version, remoteType, domain, bus, device, ids, subsystem;
};
constexpr unsigned nvmlMostLinks = 18, nvmlCapabilities = 6;

}  // namespace vgpu
