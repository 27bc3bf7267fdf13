// The memory that worker processes take, as the system and the driver report it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>

namespace vgpu {

// Proportional resident memory (Pss) in bytes; 0 if the process has ended.
uint64_t hostMemory(pid_t process);

struct GpuMemory {
  bool known = false;                   // NVML is available and uses our process ids: not in every container
  std::map<pid_t, uint64_t> byProcess;  // bytes on all GPUs
};
GpuMemory gpuMemory();

// Free bytes of each GPU now, by its UUID; of none where there is no NVML.
std::map<std::string, uint64_t> freeGpuMemory();

}  // namespace vgpu
