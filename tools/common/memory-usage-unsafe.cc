#include "tools/common/memory-usage.h"

#include <fstream>
#include <string>
#include <vector>

#include "vgpu/base/nvml.h"

namespace vgpu {
namespace {

// The few definitions of NVML (nvml.h) that are needed here.
struct NvmlProcess {
  unsigned pid;
  unsigned long long usedGpuMemory;
  unsigned gpuInstanceId, computeInstanceId;
};
struct NvmlMemory {
  unsigned long long total, free, used;
};
constexpr unsigned mostUuidBytes = 96;  // NVML_DEVICE_UUID_V2_BUFFER_SIZE
constexpr unsigned long long nvmlNotAvailable = ~0ull;
constexpr unsigned mostProcesses = 1024;

struct Nvml {
  int (*count)(unsigned*) = function<int (*)(unsigned*)>("nvmlDeviceGetCount_v2");
  int (*device)(unsigned, void**) = function<int (*)(unsigned, void**)>("nvmlDeviceGetHandleByIndex_v2");
  int (*processes)(void*, unsigned*,
                   NvmlProcess*) = function<int (*)(void*, unsigned*, NvmlProcess*)>("nvmlDeviceGetComputeRunningProcesses_v3");
  int (*uuid)(void*, char*, unsigned) = function<int (*)(void*, char*, unsigned)>("nvmlDeviceGetUUID");
  int (*memory)(void*, NvmlMemory*) = function<int (*)(void*, NvmlMemory*)>("nvmlDeviceGetMemoryInfo");
  bool works = count && device && processes;

  static const Nvml& get() {
    static const Nvml nvml;
    return nvml;
  }

  template <typename Function>
  static Function function(const char* name) {
    return reinterpret_cast<Function>(nvmlFunction(name));
  }
};

}  // namespace

uint64_t hostMemory(pid_t process) {
  std::ifstream rollup("/proc/" + std::to_string(process) + "/smaps_rollup");
  std::string line;
  while (std::getline(rollup, line))
    if (line.starts_with("Pss:")) return std::stoull(line.substr(4)) * 1024;
  return 0;
}

GpuMemory gpuMemory() {
  const Nvml& nvml = Nvml::get();
  GpuMemory result;
  if (!nvml.works) return result;
  unsigned devices = 0;
  std::vector<NvmlProcess> found(mostProcesses);
  bool complete = nvml.count(&devices) == nvmlSuccess;
  for (unsigned i = 0; i < devices && complete; ++i) {
    void* handle = nullptr;
    unsigned size = mostProcesses;
    complete = nvml.device(i, &handle) == nvmlSuccess && nvml.processes(handle, &size, found.data()) == nvmlSuccess;
    for (unsigned p = 0; p < size && complete; ++p) {
      complete = found[p].usedGpuMemory != nvmlNotAvailable;
      result.byProcess[static_cast<pid_t>(found[p].pid)] += found[p].usedGpuMemory;
    }
  }
  result.known = complete;
  return result;
}

std::map<std::string, uint64_t> freeGpuMemory() {
  const Nvml& nvml = Nvml::get();
  std::map<std::string, uint64_t> result;
  unsigned devices = 0;
  if (!nvml.works || nvml.uuid == nullptr || nvml.memory == nullptr || nvml.count(&devices) != nvmlSuccess) return result;
  for (unsigned i = 0; i < devices; ++i) {
    void* handle = nullptr;
    char uuid[mostUuidBytes] = {};
    NvmlMemory memory{};
    if (nvml.device(i, &handle) == nvmlSuccess && nvml.uuid(handle, uuid, sizeof uuid) == nvmlSuccess &&
        nvml.memory(handle, &memory) == nvmlSuccess)
      result[uuid] = memory.free;
  }
  return result;
}

}  // namespace vgpu
