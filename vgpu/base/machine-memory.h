// This machine's memory, as the system reports it.
#pragma once

#include <cstdint>
#include <limits>

namespace vgpu {

// In bytes. `availableBytes`: what can be allocated without taking memory from other processes; the maximum value if the system does not
// say.
struct MachineMemory {
  uint64_t totalBytes = 0, availableBytes = std::numeric_limits<uint64_t>::max();
};
MachineMemory machineMemory();

}  // namespace vgpu
