#include "vgpu/base/machine-memory.h"

#include <fstream>
#include <string>

#include "vgpu/base/sizes.h"

namespace vgpu {

// proc_meminfo(5): the first line is the total, the third the available memory.
MachineMemory machineMemory() {
  std::ifstream info("/proc/meminfo");
  MachineMemory memory;
  std::string name, unit;
  for (uint64_t kib; info >> name >> kib >> unit;) {
    if (name == "MemTotal:") memory.totalBytes = kib * KiB;
    if (name != "MemAvailable:") continue;
    memory.availableBytes = kib * KiB;
    break;
  }
  return memory;
}

}  // namespace vgpu
