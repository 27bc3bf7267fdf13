// The settings in VGPU_EMULATED: `devices=4,memory=8GiB,architecture=90,link=50GiB,faults=reset`.
#pragma once

#include <cstdint>
#include <string_view>

namespace vgpu::emulator::api {

struct Settings {
  int devices = 1;
  uint64_t memoryBytes = uint64_t{4} << 30;  // of each device
  int architecture = 90;                     // major * 10 + minor
  int workers = 0;                           // host threads of one kernel; 0: as many as the machine has cores
  uint64_t schedule = 0;                     // 0: blocks and warps in order; else the seed of a shuffled order
  double timeoutSeconds = 0;                 // of one kernel; 0: none
  uint32_t checks = 0;                       // Launch::checks
  uint64_t hostLink = 0, peerLink = 0;       // bytes a second, in either direction; 0: as fast as memory
  bool arePeers = true;                      // devices reach each other's memory
  bool pageableAccess = false;               // says that kernels reach the process's own memory; they do not
  uint64_t graphs = 0;                       // how many executable graphs there is memory for; 0: for any number
  bool graphNames = false;                   // what an executable graph names cannot be destroyed
  bool faultsAreFinal = true;                // a fault ends every context of the process for good, as hardware does
};

// Throws Refusal (CUDA_ERROR_INVALID_VALUE) whose message names the key or value at fault and what is accepted.
Settings parseSettings(std::string_view text);

}  // namespace vgpu::emulator::api
