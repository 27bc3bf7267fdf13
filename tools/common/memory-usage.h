// The memory that worker processes take, as the system and the driver report it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>

namespace vgpu {

// Proportional resident memory (Pss) in bytes; 0 if the process has ended.
uint64_t hostMemory(pid_t process);

struct GpuMemory {
  bool known = false;                   // NVML is available and uses our process ids: not in every container
  std::map<pid_t, uint64_t> byProcess;  // bytes on all GPUs
};
GpuMemory gpuMemory();

}  // namespace vgpu
