// This machine's memory, as the system tells it.
#pragma once

#include <cstdint>
#include <limits>

namespace vgpu {

// In bytes. `availableBytes`: what can be had without taking it from other processes; without limit if the system says nothing.
struct MachineMemory {
  uint64_t totalBytes = 0, availableBytes = std::numeric_limits<uint64_t>::max();
};
MachineMemory machineMemory();

}  // namespace vgpu
