// NVML of a host on which every device has two active links to a switch, and an inactive third one: replaces NVIDIA's for the calls of a
// worker (stub/worker/device-links-unsafe.cc).
#include <string.h>

enum { success = 0, invalidArgument = 2, notSupported = 3, links = 3, asField = 1, inactive = 2 };

struct Pci {
  char legacy[16];
  unsigned domain, bus, device, ids, subsystem;
  char id[32];
};

struct Field {
  unsigned field, scope;
  long long timestamp, latency;
  int type, result;
  unsigned value[2];
};

static char any;

int nvmlInit_v2(void) { return success; }

int nvmlDeviceGetHandleByUUID(const char* uuid, void** device) {
  *device = &any;
  return strncmp(uuid, "GPU-", 4) == 0 && strlen(uuid) == 40 ? success : invalidArgument;
}

int nvmlDeviceGetCurrPcieLinkGeneration(void* device, unsigned* value) { return *value = 4, device == &any ? success : invalidArgument; }
int nvmlDeviceGetCurrPcieLinkWidth(void* device, unsigned* value) { return *value = 8, device == &any ? success : invalidArgument; }
int nvmlDeviceGetMaxPcieLinkGeneration(void* device, unsigned* value) { return *value = 5, device == &any ? success : invalidArgument; }
// As for a device whose maximum width is unknown.
int nvmlDeviceGetMaxPcieLinkWidth(void* device, unsigned* value) { return *value = 77, device == &any ? notSupported : invalidArgument; }

// The second link can only be queried as a field.
int nvmlDeviceGetNvLinkState(void* device, unsigned link, int* isActive) {
  *isActive = link != inactive;
  if (link == asField) return notSupported;
  return device == &any && link < links ? success : invalidArgument;
}
int nvmlDeviceGetFieldValues(void* device, int count, struct Field* field) {
  field->result = field->field == 165 && field->scope < links ? success : notSupported;
  field->value[0] = field->scope != inactive;
  return device == &any && count == 1 ? success : invalidArgument;
}
// Peer access and atomics over the links; no access to host memory.
int nvmlDeviceGetNvLinkCapability(void* device, unsigned link, int which, unsigned* can) {
  *can = which == 0 || which == 2;
  return device == &any && link < links ? success : invalidArgument;
}
int nvmlDeviceGetNvLinkVersion(void* device, unsigned link, unsigned* version) {
  *version = 7;
  return device == &any && link < links ? success : invalidArgument;
}
int nvmlDeviceGetNvLinkRemoteDeviceType(void* device, unsigned link, int* type) {
  *type = 2;  // a switch
  return device == &any && link < links ? success : invalidArgument;
}
int nvmlDeviceGetNvLinkRemotePciInfo_v2(void* device, unsigned link, struct Pci* pci) {
  pci->domain = 1, pci->bus = 0xab, pci->device = link, pci->ids = 0x22a310de, pci->subsystem = 0x1796;
  return device == &any && link < links ? success : invalidArgument;
}
