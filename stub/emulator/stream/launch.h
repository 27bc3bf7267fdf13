// Kernel launches: CUDA's checks, the parameter block, and the run on the interpreter.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <vector>

#include "stub/emulator/module/loaded-module.h"
#include "stub/emulator/stream/stream.h"

namespace vgpu::emulator::api {

struct LaunchRequest {
  std::shared_ptr<Function> function;
  std::array<uint32_t, 3> grid{1, 1, 1}, block{1, 1, 1};
  uint32_t dynamicSharedBytes = 0;
  bool cooperative = false;
  std::vector<std::byte> parameters;  // the parameter block
  std::vector<void*> pointers;        // to each parameter in the block, once it is an operation's
};

// Reads kernelParams, or `extra` with CU_LAUNCH_PARAM_BUFFER_POINTER; refuses where both or neither are given.
std::vector<std::byte> readParameters(const Kernel&, void** kernelParams, void** extra);
// Refuses what CUDA refuses at the launch call.
void checkLaunch(const LaunchRequest&);
// The work itself. It keeps the function, and with it the module.
Operation launchOperation(LaunchRequest);

// How many blocks of the kernel fit on one multiprocessor, by the rules of the device's architecture.
int residentBlocks(Function&, uint32_t blockThreads, uint64_t dynamicSharedBytes);

}  // namespace vgpu::emulator::api
