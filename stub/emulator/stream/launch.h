// Kernel launches: CUDA's checks, the parameter block, and the run on the interpreter.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <vector>

#include "stub/emulator/module/loaded-module.h"
#include "stub/emulator/stream/stream.h"

namespace vgpu::emulator::api {

class DeviceNode;

struct LaunchRequest {
  std::shared_ptr<Function> function;
  std::array<uint32_t, 3> grid{1, 1, 1}, block{1, 1, 1};
  uint32_t dynamicSharedBytes = 0;
  bool cooperative = false;
  uint32_t processors = 0;            // that its stream's green context has; 0: all
  std::array<uint32_t, 3> cluster{};  // that the launch asks for; zeros: none
  std::vector<std::byte> parameters;  // the parameter block
  bool deviceUpdatable = false;        // asks for a node that kernels can change,
  std::shared_ptr<DeviceNode> device;  // which is this
  std::shared_ptr<const ReferenceViews> references;  // of its module, as they were at the launch; null: none was asked for
  std::vector<void*> pointers;        // to each parameter in the block, once it is an operation's
  // Its clusters, as the function required them when it was launched: what is set of it later is for later launches.
  struct {
    std::array<uint32_t, 3> cluster{1, 1, 1};
    bool isExplicit = false;
  } shape;
};

// Reads kernelParams, or `extra` with CU_LAUNCH_PARAM_BUFFER_POINTER; refuses where both or neither are given.
std::vector<std::byte> readParameters(const Kernel&, void** kernelParams, void** extra);
// Sets what an attribute of a launch or of a kernel's node asks for; those that only tune are accepted without effect.
void applyAttribute(CUlaunchAttributeID, const CUlaunchAttributeValue&, LaunchRequest&);
// Refuses what CUDA refuses at the launch call.
void checkLaunch(const LaunchRequest&);
// The work itself. It keeps the function, and with it the module.
Operation launchOperation(LaunchRequest);

// The product; if it is more than 32 bits hold, something that is more too.
inline uint64_t blocksOf(const std::array<uint32_t, 3>& shape) {
  const uint64_t layer = uint64_t{shape[0]} * shape[1];
  return layer > UINT32_MAX ? layer : layer * shape[2];
}
// The cluster that a launch asks for, or else the function's, or else one block. Refuses what is not the function's.
std::array<uint32_t, 3> clusterOf(Function&, const std::array<uint32_t, 3>& asked);
// How many blocks of the kernel fit on one multiprocessor, by the rules of the device's architecture.
int residentBlocks(Function&, uint32_t blockThreads, uint64_t dynamicSharedBytes);

}  // namespace vgpu::emulator::api
