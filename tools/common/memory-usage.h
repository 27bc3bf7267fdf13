// The memory use of worker processes, as reported by the system and the driver.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>

namespace vgpu {

// Proportional resident memory (Pss) in bytes; 0 if the process has ended.
uint64_t hostMemory(pid_t process);

struct GpuMemory {
  bool known = false;                   // NVML is available and uses our process ids, which is not so in every container
  std::map<pid_t, uint64_t> byProcess;  // bytes on all GPUs, by process
};
GpuMemory gpuMemory();

// Free bytes of each GPU at present, by its UUID; empty without NVML.
std::map<std::string, uint64_t> freeGpuMemory();

}  // namespace vgpu
