// The settings in VGPU_EMULATED: `devices=4,memory=8GiB,architecture=90,link=50GiB,faults=reset`.
#pragma once

#include <cstdint>
#include <string_view>

namespace vgpu::emulator::api {

struct Settings {
  int devices = 1;
  uint64_t memoryBytes = uint64_t{4} << 30;  // of each device
  int architecture = 90;                     // major * 10 + minor
  int workers = 0;                           // host threads for one kernel; 0: one for each core
  uint64_t schedule = 0;                     // 0: blocks and warps in order; else the seed of a shuffle
  double timeoutSeconds = 0;                 // for one kernel; 0: no limit
  uint32_t checks = 0;                       // Launch::checks
  uint64_t hostLink = 0, peerLink = 0;       // bytes per second in either direction; 0: as fast as memory
  bool arePeers = true;                      // devices can access each other's memory
  bool pageableAccess = false;               // the device reports that kernels can access pageable memory; they cannot
  uint64_t graphs = 0;                       // number of executable graphs for which there is memory; 0: no limit
  bool graphNames = false;                   // objects that an executable graph names cannot be destroyed
  bool faultsAreFinal = true;                // a fault ends every context of the process for good, as on hardware
};

// Throws Refusal (CUDA_ERROR_INVALID_VALUE) whose message names the wrong key or value and what is accepted.
Settings parseSettings(std::string_view text);

}  // namespace vgpu::emulator::api
