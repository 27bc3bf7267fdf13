// The links of the session's devices to each other and to their host, as reported by the NVML of the device's present host: NCCL and others
// choose their transports by them. A device that this NVML does not know has no links, like a device without NVLink.
#include <cstdint>

#include "intercept/nvml/device-links.h"
#include "intercept/nvml/face.h"

using namespace vgpu;
using namespace vgpu::nvml;

extern "C" CUresult cuVgpuDeviceLinks(CUdevice device, DeviceLinks* links);

namespace {

template <typename Body>
int withLinks(void* handle, const void* result, Body&& body) {
  return of(handle, result, [&](CUdevice device) -> int {
    DeviceLinks links;
    return cuVgpuDeviceLinks(device, &links) == CUDA_SUCCESS ? body(links) : int{unknown};
  });
}

template <typename Body>
int withLink(void* handle, unsigned link, const void* result, Body&& body) {
  return withLinks(handle, result, [&](const DeviceLinks& links) -> int {
    if (links.count == 0) return notSupported;
    return link < links.count ? body(links.links[link]) : int{invalidArgument};
  });
}

// Returns a PCI Express number.
int give(void* handle, unsigned* value, uint32_t DeviceLinks::*field) {
  return withLinks(handle, value, [&](const DeviceLinks& links) -> int {
    *value = links.*field;
    return *value != 0 ? success : notSupported;
  });
}

// nvmlNvLinkCapability_t
constexpr int reachesPeers = 0;

bool hasLink(const DeviceLinks& links) {
  for (unsigned i = 0; i < links.count; ++i)
    if (links.links[i].isActive != 0 && (links.links[i].capabilities >> reachesPeers & 1) != 0) return true;
  return false;
}

// The value of a queried field; other fields are not supported. For a field of a link the scope is the link's number.
int valueOf(const DeviceLinks& links, const NvmlField& asked, unsigned& value) {
  const bool isOfLink = asked.field == nvmlLinkState || asked.field == nvmlLinkVersion;
  if (links.count == 0 || (!isOfLink && asked.field != nvmlLinkCount)) return notSupported;
  if (!isOfLink) return value = links.count, int{success};
  if (asked.scope >= links.count) return invalidArgument;
  const NvmlLink& link = links.links[asked.scope];
  value = asked.field == nvmlLinkState ? link.isActive : link.version;
  return success;
}

}  // namespace

FACE int nvmlDeviceGetCurrPcieLinkGeneration(void* handle, unsigned* value) { return give(handle, value, &DeviceLinks::generation); }
FACE int nvmlDeviceGetCurrPcieLinkWidth(void* handle, unsigned* value) { return give(handle, value, &DeviceLinks::width); }
FACE int nvmlDeviceGetMaxPcieLinkGeneration(void* handle, unsigned* value) { return give(handle, value, &DeviceLinks::bestGeneration); }
FACE int nvmlDeviceGetGpuMaxPcieLinkGeneration(void* handle, unsigned* value) { return give(handle, value, &DeviceLinks::bestGeneration); }
FACE int nvmlDeviceGetMaxPcieLinkWidth(void* handle, unsigned* value) { return give(handle, value, &DeviceLinks::bestWidth); }

FACE int nvmlDeviceGetNvLinkState(void* handle, unsigned link, int* isActive) {
  return withLink(handle, link, isActive, [&](const NvmlLink& of) { return *isActive = of.isActive != 0, int{success}; });
}
FACE int nvmlDeviceGetNvLinkVersion(void* handle, unsigned link, unsigned* version) {
  return withLink(handle, link, version, [&](const NvmlLink& of) { return *version = of.version, int{success}; });
}
FACE int nvmlDeviceGetNvLinkRemoteDeviceType(void* handle, unsigned link, int* type) {
  return withLink(handle, link, type, [&](const NvmlLink& of) { return *type = static_cast<int>(of.remoteType), int{success}; });
}
FACE int nvmlDeviceGetNvLinkCapability(void* handle, unsigned link, int which, unsigned* can) {
  return withLink(handle, link, can, [&](const NvmlLink& of) -> int {
    if (which < 0 || which >= static_cast<int>(nvmlCapabilities)) return invalidArgument;
    *can = of.capabilities >> which & 1;
    return success;
  });
}
FACE int nvmlDeviceGetNvLinkRemotePciInfo_v2(void* handle, unsigned link, NvmlPci* pci) {
  return withLink(handle, link, pci, [&](const NvmlLink& of) {
    *pci = {};
    pci->domain = of.domain, pci->bus = of.bus, pci->device = of.device, pci->ids = of.ids, pci->subsystem = of.subsystem;
    nameAddress(*pci);
    return int{success};
  });
}
FACE int nvmlDeviceGetNvLinkRemotePciInfo(void* handle, unsigned link, NvmlPci* pci) {
  return nvmlDeviceGetNvLinkRemotePciInfo_v2(handle, link, pci);
}

FACE int nvmlDeviceGetFieldValues(void* handle, int count, NvmlField* fields) {
  return withLinks(handle, fields, [&](const DeviceLinks& links) -> int {
    if (count <= 0) return invalidArgument;
    for (NvmlField* each = fields; each != fields + count; ++each) {
      each->timestamp = each->latency = 0;
      each->whole = 0;
      each->type = nvmlUnsigned;
      each->result = valueOf(links, *each, each->value);
    }
    return success;
  });
}

// nvmlGpuP2PCapsIndex_t and nvmlGpuP2PStatus_t: whether a device can read (0) or write (1) another's memory or has atomics on it (3), as
// CUDA reports; whether over NVLink (2) or PCI Express (4).
FACE int nvmlDeviceGetP2PStatus(void* handle, void* other, int index, int* status) {
  constexpr int isPossible = 0, isNot = 5, byLinks = 2, atomics = 3, overPci = 4;
  return of(handle, status, [&](CUdevice device) {
    return of(other, status, [&](CUdevice peer) -> int {
      const bool asksWhich = index == byLinks || index == overPci;
      int can = device == peer && !asksWhich;
      if (index < 0 || index > overPci) return invalidArgument;
      const auto which = index == atomics ? CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED : CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED;
      if (device != peer && cuDeviceGetP2PAttribute(&can, which, device, peer) != CUDA_SUCCESS) return unknown;
      if (asksWhich && can != 0) {
        DeviceLinks here, there;
        if (cuVgpuDeviceLinks(device, &here) != CUDA_SUCCESS || cuVgpuDeviceLinks(peer, &there) != CUDA_SUCCESS) return unknown;
        can = (hasLink(here) && hasLink(there)) == (index == byLinks);
      }
      *status = can != 0 ? isPossible : isNot;
      return success;
    });
  });
}
