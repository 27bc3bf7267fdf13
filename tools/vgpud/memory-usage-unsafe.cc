#include "tools/vgpud/memory-usage.h"

#include <dlfcn.h>

#include <fstream>
#include <memory>
#include <string>
#include <vector>

namespace vgpu::daemon {
namespace {

// The few names of NVML (nvml.h) that are needed here; its header is not part of every toolkit.
struct NvmlProcess {
  unsigned pid;
  unsigned long long usedGpuMemory;
  unsigned gpuInstanceId, computeInstanceId;
};
constexpr int nvmlSuccess = 0;
constexpr unsigned long long nvmlNotAvailable = ~0ull;
constexpr unsigned mostProcesses = 1024;

template <typename Function>
Function symbol(void* library, const char* name) {
  return reinterpret_cast<Function>(dlsym(library, name));
}

}  // namespace

uint64_t hostMemory(pid_t process) {
  std::ifstream rollup("/proc/" + std::to_string(process) + "/smaps_rollup");
  std::string line;
  while (std::getline(rollup, line))
    if (line.starts_with("Pss:")) return std::stoull(line.substr(4)) * 1024;
  return 0;
}

GpuMemory gpuMemory() {
  GpuMemory result;
  std::unique_ptr<void, int (*)(void*)> nvml(dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL), dlclose);
  if (!nvml) return result;
  auto begin = symbol<int (*)()>(nvml.get(), "nvmlInit_v2");
  auto end = symbol<int (*)()>(nvml.get(), "nvmlShutdown");
  auto count = symbol<int (*)(unsigned*)>(nvml.get(), "nvmlDeviceGetCount_v2");
  auto device = symbol<int (*)(unsigned, void**)>(nvml.get(), "nvmlDeviceGetHandleByIndex_v2");
  auto processes =
      symbol<int (*)(void*, unsigned*, NvmlProcess*)>(nvml.get(), "nvmlDeviceGetComputeRunningProcesses_v3");
  if (!begin || !end || !count || !device || !processes || begin() != nvmlSuccess) return result;
  unsigned devices = 0;
  std::vector<NvmlProcess> found(mostProcesses);
  bool complete = count(&devices) == nvmlSuccess;
  for (unsigned i = 0; i < devices && complete; ++i) {
    void* handle = nullptr;
    unsigned size = mostProcesses;
    complete = device(i, &handle) == nvmlSuccess && processes(handle, &size, found.data()) == nvmlSuccess;
    for (unsigned p = 0; p < size && complete; ++p) {
      complete = found[p].usedGpuMemory != nvmlNotAvailable;
      result.byProcess[static_cast<pid_t>(found[p].pid)] += found[p].usedGpuMemory;
    }
  }
  end();
  result.known = complete;
  return result;
}

}  // namespace vgpu::daemon
