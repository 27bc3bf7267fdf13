// What worker processes cost in memory, as the system and the driver tell it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>

namespace vgpu::daemon {

// Proportional resident memory (Pss) in bytes; 0 if the process has ended.
uint64_t hostMemory(pid_t process);

struct GpuMemory {
  bool known = false;                   // NVML is there and names processes as we do: not in every container
  std::map<pid_t, uint64_t> byProcess;  // bytes on all GPUs
};
GpuMemory gpuMemory();

}  // namespace vgpu::daemon
