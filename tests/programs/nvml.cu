// NVML, opened as frameworks open it: it lists the devices that CUDA has, and reports their free memory and their links. Its calls do
// not count as use of CUDA: if a program has called only NVML, a child made by fork() may use CUDA.
#include <dlfcn.h>
#include <sys/wait.h>

#include <cstring>

#include "program.h"

namespace {

constexpr int success = 0, uninitialized = 1, invalidArgument = 2, notSupported = 3, insufficientSize = 7;

struct Memory {
  unsigned long long total, free, used;
};
struct Pci {
  char legacy[16];
  unsigned domain, bus, device, ids, subsystem;
  char id[32];
};

struct Field {
  Field(unsigned field, unsigned scope) : field(field), scope(scope) {}
  unsigned field, scope;
  long long timestamp = 0, latency = 0;
  int type = 0, result = -1;
  unsigned value[2] = {};
};

void* library = nullptr;

template <typename... Arguments>
int ask(const char* name, Arguments... arguments) {
  auto function = reinterpret_cast<int (*)(Arguments...)>(dlsym(library, name));
  if (function == nullptr) std::printf("there is no %s\n", name), std::exit(1);
  return function(arguments...);
}

bool expectDevice(int number, void* device) {
  cudaDeviceProp properties;
  CHECK(cudaGetDeviceProperties(&properties, number));
  char name[96], uuid[96], expected[64];
  unsigned index = 99;
  int major = 0, minor = 0;
  Memory memory{};
  Pci pci{};
  bool ok = EXPECT(ask("nvmlDeviceGetName", device, name, 96u) == success) && EXPECT(std::strcmp(name, properties.name) == 0);
  ok &= EXPECT(ask("nvmlDeviceGetUUID", device, uuid, 96u) == success) && EXPECT(std::strncmp(uuid, "GPU-", 4) == 0);
  std::snprintf(expected, sizeof expected, "GPU-%02x%02x", static_cast<unsigned char>(properties.uuid.bytes[0]),
                static_cast<unsigned char>(properties.uuid.bytes[1]));
  ok &= EXPECT(std::strncmp(uuid, expected, 8) == 0);
  void* found = nullptr;
  ok &= EXPECT(ask("nvmlDeviceGetHandleByUUID", static_cast<const char*>(uuid), &found) == success) && EXPECT(found == device);
  ok &= EXPECT(ask("nvmlDeviceGetHandleByUUID", "GPU-nobody", &found) != success);
  ok &= EXPECT(ask("nvmlDeviceGetPciInfo_v3", device, &pci) == success) && EXPECT(pci.bus == static_cast<unsigned>(properties.pciBusID));
  ok &= EXPECT(ask("nvmlDeviceGetHandleByPciBusId_v2", static_cast<const char*>(pci.id), &found) == success);
  ok &= EXPECT(ask("nvmlDeviceGetIndex", device, &index) == success) && EXPECT(index == static_cast<unsigned>(number));
  ok &= EXPECT(ask("nvmlDeviceGetCudaComputeCapability", device, &major, &minor) == success);
  ok &= EXPECT(major == properties.major && minor == properties.minor);
  ok &= EXPECT(ask("nvmlDeviceGetMemoryInfo", device, &memory) == success) && EXPECT(memory.total >= properties.totalGlobalMem);
  ok &= EXPECT(memory.free + memory.used <= memory.total);
  ok &= EXPECT(ask("nvmlDeviceGetName", device, name, 2u) == insufficientSize);
  ok &= EXPECT(ask("nvmlDeviceGetName", static_cast<void*>(nullptr), name, 96u) == invalidArgument);
  return ok;
}

// A device without links reports that for each query; one with links answers all queries about an active link.
bool expectLinks(void* device) {
  unsigned value = 0;
  Pci pci{};
  int isActive = 0, link = ask("nvmlDeviceGetNvLinkState", device, 0u, &isActive);
  bool ok = EXPECT(link == success || link == notSupported);
  for (const char* each : {"nvmlDeviceGetNvLinkVersion", "nvmlDeviceGetNvLinkRemoteDeviceType"})
    ok &= EXPECT(ask(each, device, 0u, &value) == link);
  ok &= EXPECT(ask("nvmlDeviceGetNvLinkCapability", device, 0u, 0, &value) == link) & EXPECT(link != success || value <= 1);
  ok &= EXPECT(ask("nvmlDeviceGetNvLinkRemotePciInfo_v2", device, 0u, &pci) == link);
  int beyond = 0;
  ok &= EXPECT(link != success || ask("nvmlDeviceGetNvLinkState", device, 99u, &beyond) == invalidArgument);
  ok &= EXPECT(ask("nvmlDeviceGetNvLinkState", device, 0u, static_cast<int*>(nullptr)) == invalidArgument);
  Field fields[] = {{165, 0}, {9999, 0}};  // NVML_FI_DEV_NVLINK_GET_STATE, and a field that does not exist
  ok &= EXPECT(ask("nvmlDeviceGetFieldValues", device, 2, fields) == success) & EXPECT((fields[0].result == success) == (link == success));
  ok &= EXPECT(link != success || fields[0].value[0] == static_cast<unsigned>(isActive)) & EXPECT(fields[1].result != success);
  ok &= EXPECT(ask("nvmlDeviceGetFieldValues", device, 0, fields) == invalidArgument);
  const int known = ask("nvmlDeviceGetCurrPcieLinkWidth", device, &value);
  return ok & EXPECT(known == success || known == notSupported) & EXPECT(known != success || (value >= 1 && value <= 32));
}

// The results of tests/tools/nvml-double.c.
bool expectDouble(void* device, void* peer) {
  bool ok = true;
  unsigned generation = 0, width = 0, best = 0, value = 0;
  ok &= EXPECT(ask("nvmlDeviceGetCurrPcieLinkGeneration", device, &generation) == success) & EXPECT(generation == 4);
  ok &= EXPECT(ask("nvmlDeviceGetCurrPcieLinkWidth", device, &width) == success) & EXPECT(width == 8);
  ok &= EXPECT(ask("nvmlDeviceGetMaxPcieLinkGeneration", device, &best) == success) & EXPECT(best == 5);
  ok &= EXPECT(ask("nvmlDeviceGetMaxPcieLinkWidth", device, &best) == notSupported);
  for (unsigned link = 0; link < 3; ++link) {
    int isActive = -1, type = -1;
    Pci pci{};
    ok &= EXPECT(ask("nvmlDeviceGetNvLinkState", device, link, &isActive) == success) & EXPECT(isActive == (link != 2));
    for (int which = 0; which < 6; ++which)
      ok &= EXPECT(ask("nvmlDeviceGetNvLinkCapability", device, link, which, &value) == success) & EXPECT(value == (which == 0 || which == 2));
    ok &= EXPECT(ask("nvmlDeviceGetNvLinkVersion", device, link, &value) == success) & EXPECT(value == 7);
    ok &= EXPECT(ask("nvmlDeviceGetNvLinkRemoteDeviceType", device, link, &type) == success) & EXPECT(type == 2);
    ok &= EXPECT(ask("nvmlDeviceGetNvLinkRemotePciInfo", device, link, &pci) == success);
    ok &= EXPECT(pci.domain == 1 && pci.bus == 0xab && pci.device == link && pci.ids == 0x22a310de && pci.subsystem == 0x1796);
    ok &= EXPECT(std::string("00000001:AB:0") + std::to_string(link) + ".0" == pci.id);
  }
  Field fields[] = {{91, 0}, {165, 1}, {165, 2}, {166, 0}, {165, 3}};
  ok &= EXPECT(ask("nvmlDeviceGetFieldValues", device, 5, fields) == success) & EXPECT(fields[0].value[0] == 3);
  ok &= EXPECT(fields[1].value[0] == 1) & EXPECT(fields[2].value[0] == 0) & EXPECT(fields[3].value[0] == 7);
  ok &= EXPECT(fields[3].result == success) & EXPECT(fields[4].result == invalidArgument);
  ok &= EXPECT(ask("nvmlDeviceGetNvLinkCapability", device, 0u, 6, &value) == invalidArgument);
  ok &= EXPECT(ask("nvmlDeviceGetNvLinkVersion", device, 3u, &value) == invalidArgument);
  int linked = -1, overPci = -1;
  ok &= EXPECT(ask("nvmlDeviceGetP2PStatus", device, peer, 2, &linked) == success) & EXPECT(linked == 0);
  return ok & EXPECT(ask("nvmlDeviceGetP2PStatus", device, peer, 4, &overPci) == success) & EXPECT(overPci != 0);
}

__global__ void addOne(int* values) { values[threadIdx.x] += 1; }

bool childHasCuda() {
  const pid_t child = fork();
  if (child == 0) {
    unsigned count = 0;
    int devices = 0, *pinned = nullptr;
    CHECK(cudaGetDeviceCount(&devices));
    bool ok = EXPECT(ask("nvmlDeviceGetCount_v2", &count) == success) & EXPECT(count == static_cast<unsigned>(devices));
    CHECK(cudaMallocHost(&pinned, 2 * sizeof(int)));
    pinned[0] = 5, pinned[1] = 6;
    DeviceArray<int> values(std::vector<int>{1, 2});
    addOne<<<1, 2>>>(values);
    addOne<<<1, 2>>>(pinned);
    ok &= same("device memory", values.download(), {2, 3}) & EXPECT(pinned[0] == 6 && pinned[1] == 7);
    std::fflush(stdout);
    _exit(ok ? 0 : 1);
  }
  int status = 1;
  return EXPECT(waitpid(child, &status, 0) == child) & EXPECT(status == 0);
}

}  // namespace

// With "linked": on a node whose NVML is that double, with two devices; with "moves" too, it is resumed on a node that has no information
// about links.
int main(int words, char** arguments) {
  library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
  if (library == nullptr) return std::printf("%s\n", dlerror()), 1;
  unsigned count = 0;
  bool ok = EXPECT(ask("nvmlDeviceGetCount_v2", &count) == uninitialized);
  ok &= EXPECT(ask("nvmlInit_v2") == success);
  ok &= EXPECT(ask("nvmlDeviceGetCount_v2", &count) == success);
  ok &= childHasCuda();
  int devices = 0;
  CHECK(cudaGetDeviceCount(&devices));
  ok &= EXPECT(count == static_cast<unsigned>(devices));
  void* device = nullptr;
  ok &= EXPECT(ask("nvmlDeviceGetHandleByIndex_v2", count, &device) == invalidArgument);
  for (int number = devices - 1; number >= 0; --number)
    ok &= EXPECT(ask("nvmlDeviceGetHandleByIndex_v2", static_cast<unsigned>(number), &device) == success) && expectDevice(number, device) &&
          expectLinks(device);
  void* peer = nullptr;
  if (words > 1 && std::strcmp(arguments[1], "linked") == 0)
    ok &= EXPECT(ask("nvmlDeviceGetHandleByIndex_v2", 1u, &peer) == success) && expectDouble(device, peer);

  Memory before{}, after{};
  ok &= EXPECT(ask("nvmlDeviceGetMemoryInfo", device, &before) == success);
  DeviceArray<char> block(256 << 20);
  ok &= EXPECT(ask("nvmlDeviceGetMemoryInfo", device, &after) == success);
  ok &= EXPECT(after.used >= before.used + (256 << 20));
  pausePoint();
  ok &= EXPECT(ask("nvmlDeviceGetMemoryInfo", device, &after) == success);
  ok &= EXPECT(after.used >= 256 << 20);
  int isActive = -1;
  if (words > 2) ok &= EXPECT(ask("nvmlDeviceGetNvLinkState", device, 0u, &isActive) == notSupported);
  unsigned utilization[2] = {999, 999};
  CHECK(cudaDeviceSynchronize());
  int reaches = -1, linked = -1;  // itself
  ok &= EXPECT(ask("nvmlDeviceGetP2PStatus", device, device, 0, &reaches) == success) && EXPECT(reaches == 0);
  ok &= EXPECT(ask("nvmlDeviceGetP2PStatus", device, device, 2, &linked) == success) && EXPECT(linked != 0);
  ok &= EXPECT(ask("nvmlDeviceGetP2PStatus", device, device, 9, &linked) == 2);
  ok &= EXPECT(ask("nvmlDeviceGetUtilizationRates", device, utilization) == success) && EXPECT(utilization[0] <= 100);
  ok &= EXPECT(ask("nvmlShutdown") == success);
  ok &= EXPECT(ask("nvmlDeviceGetCount_v2", &count) == uninitialized);
  return verdict("nvml", ok);
}
