// NVML in a session: frameworks and monitors use it to count GPUs, name them, and query free memory. The devices are the session's, with
// the names, identities and sizes that CUDA reports to the program; links.cc has their links. They have the numbers of
// CUDA_VISIBLE_DEVICES, because frameworks look up its numbers here: natively NVML lists all GPUs, whatever the variable says. Numbers
// between them are counted, and refused as GPUs that this user may not use (nvml.h, nvmlDeviceGetCount_v2). Queries of a GPU's hardware
// (clocks, temperatures, other processes) are not supported, as on devices that lack them.
//
// Any thread. The first query about a device opens the session, not nvmlInit(). Source: nvml.h of CUDA 12.9.
#include "intercept/nvml/face.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <unistd.h>

#include "vgpu/base/uuid-text.h"

using namespace vgpu;
using namespace vgpu::nvml;

extern "C" CUresult cuVgpuBegin();
extern "C" CUresult cuVgpuDeviceNumber(CUdevice device, unsigned* number);
extern "C" CUresult cuVgpuDeviceIsBusy(CUdevice device, int* isBusy);
extern "C" CUresult cuVgpuDeviceFree(CUdevice device, uint64_t* freeBytes);

namespace {

constexpr struct {
  int status;
  const char* text;
} texts[] = {{success, "Success"},
             {uninitialized, "Uninitialized"},
             {invalidArgument, "Invalid Argument"},
             {notSupported, "Not Supported"},
             {noPermission, "Insufficient Permissions"},
             {notFound, "Not Found"},
             {insufficientSize, "Insufficient Size"},
             {driverNotLoaded, "Driver Not Loaded"},
             {versionMismatch, "Argument Version Mismatch"}};

constexpr int most = 64;
char devices[most];  // the handle of device i is &devices[i]
std::atomic<int> users{0};

int deviceCount() {
  int count = 0;
  return cuVgpuBegin() == CUDA_SUCCESS && cuDeviceGetCount(&count) == CUDA_SUCCESS ? std::min(count, most) : 0;
}

unsigned numberOf(CUdevice device) {
  unsigned number = 0;
  return cuVgpuDeviceNumber(device, &number) == CUDA_SUCCESS ? number : static_cast<unsigned>(device);
}

int give(int device, void** handle) {
  *handle = devices + device;
  return success;
}

int copyText(const char* from, char* to, unsigned bytes) {
  if (to == nullptr) return invalidArgument;
  if (std::strlen(from) >= bytes) return insufficientSize;
  std::strcpy(to, from);
  return success;
}

int attribute(CUdevice device, CUdevice_attribute which) {
  int value = 0;
  return cuDeviceGetAttribute(&value, which, device) == CUDA_SUCCESS ? value : 0;
}

UuidText uuidOf(CUdevice device) {
  CUuuid id{};
  cuDeviceGetUuid(&id, device);
  return UuidText(id.bytes);
}

struct Memory {
  uint64_t total, free, used;
};

int memoryOf(CUdevice device, Memory& memory) {
  size_t total = 0;
  if (cuDeviceTotalMem(&total, device) != CUDA_SUCCESS) return unknown;
  memory.total = memory.free = total;
  if (cuVgpuDeviceFree(device, &memory.free) != CUDA_SUCCESS) return unknown;
  memory.free = std::min<uint64_t>(memory.free, total);
  memory.used = total - memory.free;
  return success;
}

int pciOf(CUdevice device, NvmlPci& pci) {
  pci = {};
  pci.domain = static_cast<unsigned>(attribute(device, CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID));
  pci.bus = static_cast<unsigned>(attribute(device, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID));
  pci.device = static_cast<unsigned>(attribute(device, CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID));
  nameAddress(pci);
  return success;
}

// nvmlProcessInfo_v1_t and _v2_t. Only this program is reported, if it uses the device.
struct Process {
  unsigned pid;
  unsigned long long bytes;
};
struct ProcessInInstance : Process {
  unsigned gpuInstance, computeInstance;
};

template <typename Info>
int processesOf(void* handle, unsigned* count, Info* infos) {
  return of(handle, count, [&](CUdevice device) -> int {
    Memory memory{};
    if (int error = memoryOf(device, memory)) return error;
    const unsigned room = *count;
    *count = memory.used != 0 ? 1 : 0;
    if (*count > room) return insufficientSize;
    if (*count == 0) return success;
    if (infos == nullptr) return invalidArgument;
    std::memset(infos, 0xff, sizeof *infos);  // no MIG instance
    infos->pid = static_cast<unsigned>(getpid());
    infos->bytes = memory.used;
    return success;
  });
}

}  // namespace

namespace vgpu::nvml {

Status find(const void* handle, const void* result, CUdevice& device) {
  if (users.load() == 0) return uninitialized;
  auto* at = static_cast<const char*>(handle);
  if (at < devices || at >= devices + deviceCount() || result == nullptr) return invalidArgument;
  device = static_cast<CUdevice>(at - devices);
  return success;
}

void nameAddress(NvmlPci& pci) {
  std::snprintf(pci.legacy, sizeof pci.legacy, "%04X:%02X:%02X.0", pci.domain & 0xffff, pci.bus & 0xff, pci.device & 0xff);
  std::snprintf(pci.id, sizeof pci.id, "%08X:%02X:%02X.0", pci.domain, pci.bus & 0xff, pci.device & 0xff);
}

}  // namespace vgpu::nvml

FACE int nvmlInitWithFlags(unsigned) { return users.fetch_add(1), success; }
FACE int nvmlInit_v2() { return nvmlInitWithFlags(0); }
FACE int nvmlInit() { return nvmlInitWithFlags(0); }
FACE int nvmlShutdown() {
  int before = users.load();
  while (before > 0 && !users.compare_exchange_weak(before, before - 1)) {}
  return before > 0 ? success : uninitialized;
}

FACE const char* nvmlErrorString(int status) {
  for (auto& each : texts)
    if (each.status == status) return each.text;
  return "Unknown Error";
}

FACE int nvmlSystemGetCudaDriverVersion_v2(int* version) {
  if (version == nullptr) return invalidArgument;
  return cuDriverGetVersion(version) == CUDA_SUCCESS ? success : unknown;
}
FACE int nvmlSystemGetCudaDriverVersion(int* version) { return nvmlSystemGetCudaDriverVersion_v2(version); }
// The NVML version whose interface this file implements.
FACE int nvmlSystemGetNVMLVersion(char* version, unsigned bytes) { return copyText("12.575.51", version, bytes); }

FACE int nvmlDeviceGetCount_v2(unsigned* count) {
  if (users.load() == 0) return uninitialized;
  if (count == nullptr) return invalidArgument;
  *count = 0;
  for (int device = 0, all = deviceCount(); device < all; ++device) *count = std::max(*count, numberOf(device) + 1);
  return success;
}
// The first version counts only the devices that the program may use, and numbers them consecutively.
FACE int nvmlDeviceGetCount(unsigned* count) {
  if (users.load() == 0) return uninitialized;
  return count == nullptr ? invalidArgument : (*count = static_cast<unsigned>(deviceCount()), success);
}

FACE int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** handle) {
  if (users.load() == 0) return uninitialized;
  unsigned count = 0;
  nvmlDeviceGetCount_v2(&count);
  if (handle == nullptr || index >= count) return invalidArgument;
  for (int device = 0, all = deviceCount(); device < all; ++device)
    if (numberOf(device) == index) return give(device, handle);
  return noPermission;
}
FACE int nvmlDeviceGetHandleByIndex(unsigned index, void** handle) {
  if (users.load() == 0) return uninitialized;
  if (handle == nullptr || index >= static_cast<unsigned>(deviceCount())) return invalidArgument;
  return give(static_cast<int>(index), handle);
}

FACE int nvmlDeviceGetHandleByUUID(const char* uuid, void** handle) {
  if (users.load() == 0) return uninitialized;
  if (uuid == nullptr || handle == nullptr) return invalidArgument;
  for (int device = 0; device < deviceCount(); ++device)
    if (std::strcmp(uuidOf(device).text, uuid) == 0) return give(device, handle);
  return notFound;
}

FACE int nvmlDeviceGetHandleByPciBusId_v2(const char* id, void** handle) {
  if (users.load() == 0) return uninitialized;
  unsigned domain = 0, bus = 0, at = 0;
  if (id == nullptr || handle == nullptr || std::sscanf(id, "%x:%x:%x", &domain, &bus, &at) != 3) return invalidArgument;
  for (int device = 0; device < deviceCount(); ++device) {
    NvmlPci pci;
    pciOf(device, pci);
    if (pci.domain == domain && pci.bus == bus && pci.device == at) return give(device, handle);
  }
  return notFound;
}
FACE int nvmlDeviceGetHandleByPciBusId(const char* id, void** handle) { return nvmlDeviceGetHandleByPciBusId_v2(id, handle); }

FACE int nvmlDeviceGetName(void* handle, char* name, unsigned bytes) {
  return of(handle, name, [&](CUdevice device) -> int {
    char whole[256];
    return cuDeviceGetName(whole, sizeof whole, device) == CUDA_SUCCESS ? copyText(whole, name, bytes) : int{unknown};
  });
}
FACE int nvmlDeviceGetUUID(void* handle, char* uuid, unsigned bytes) {
  return of(handle, uuid, [&](CUdevice device) { return copyText(uuidOf(device).text, uuid, bytes); });
}
FACE int nvmlDeviceGetIndex(void* handle, unsigned* index) {
  return of(handle, index, [&](CUdevice device) { return *index = numberOf(device), int{success}; });
}
FACE int nvmlDeviceGetMinorNumber(void* handle, unsigned* number) { return nvmlDeviceGetIndex(handle, number); }

FACE int nvmlDeviceGetCudaComputeCapability(void* handle, int* major, int* minor) {
  return of(handle, major, [&](CUdevice device) -> int {
    if (minor == nullptr) return invalidArgument;
    *major = attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
    *minor = attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
    return success;
  });
}

FACE int nvmlDeviceGetMemoryInfo(void* handle, Memory* memory) {
  return of(handle, memory, [&](CUdevice device) { return memoryOf(device, *memory); });
}

// nvmlMemory_v2_t: its version field contains the structure's size and version number.
struct MemoryV2 {
  unsigned version;
  uint64_t total, reserved, free, used;
};
FACE int nvmlDeviceGetMemoryInfo_v2(void* handle, MemoryV2* memory) {
  return of(handle, memory, [&](CUdevice device) -> int {
    if (memory->version != (sizeof(MemoryV2) | 2u << 24)) return versionMismatch;
    Memory now{};
    if (int error = memoryOf(device, now)) return error;
    memory->total = now.total, memory->reserved = 0, memory->free = now.free, memory->used = now.used;
    return success;
  });
}

struct Utilization {
  unsigned gpu, memory;
};
// Sampled at the call: whether work of the program is outstanding.
FACE int nvmlDeviceGetUtilizationRates(void* handle, Utilization* utilization) {
  return of(handle, utilization, [&](CUdevice device) -> int {
    int isBusy = 0;
    if (cuVgpuDeviceIsBusy(device, &isBusy) != CUDA_SUCCESS) return unknown;
    *utilization = {isBusy != 0 ? 100u : 0u, isBusy != 0 ? 100u : 0u};
    return success;
  });
}

FACE int nvmlDeviceGetPciInfo_v3(void* handle, NvmlPci* pci) {
  return of(handle, pci, [&](CUdevice device) { return pciOf(device, *pci); });
}
FACE int nvmlDeviceGetPciInfo_v2(void* handle, NvmlPci* pci) { return nvmlDeviceGetPciInfo_v3(handle, pci); }

FACE int nvmlDeviceGetComputeRunningProcesses(void* handle, unsigned* count, Process* infos) {
  return processesOf(handle, count, infos);
}
FACE int nvmlDeviceGetComputeRunningProcesses_v2(void* handle, unsigned* count, ProcessInInstance* infos) {
  return processesOf(handle, count, infos);
}
FACE int nvmlDeviceGetComputeRunningProcesses_v3(void* handle, unsigned* count, ProcessInInstance* infos) {
  return processesOf(handle, count, infos);
}

// All other exports.
#define NVML_ABSENT(name) \
  FACE int name() { return notSupported; }
#include "absent.inc"
