// Kernel launches: CUDA's checks, the parameter block, and the run in the interpreter.
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
  uint32_t processors = 0;            // multiprocessors of its stream's green context; 0: all
  std::array<uint32_t, 3> cluster{};  // as given by the launch; zeros: not given
  std::vector<std::byte> parameters;  // the parameter block
  bool deviceUpdatable = false;        // asks for a device-updatable node,
  std::shared_ptr<DeviceNode> device;  // which is this one
  std::shared_ptr<const ReferenceViews> references;  // of its module, at the time of the launch; null: the program has looked none up
  std::vector<void*> pointers;        // to each parameter in the block, once the request is part of an operation
  // The cluster shape at the time of the launch: later changes of the function's attributes apply to later launches.
  struct {
    std::array<uint32_t, 3> cluster{1, 1, 1};
    bool isExplicit = false;
  } shape;
};

// Reads kernelParams, or `extra` with CU_LAUNCH_PARAM_BUFFER_POINTER; refuses if both or neither are given.
std::vector<std::byte> readParameters(const Kernel&, void** kernelParams, void** extra);
// Applies an attribute of a launch or a kernel node; those that only tune are accepted without effect.
void applyAttribute(CUlaunchAttributeID, const CUlaunchAttributeValue&, LaunchRequest&);
// Refuses what CUDA refuses at the launch call.
void checkLaunch(const LaunchRequest&);
// The operation for a launch. Keeps the function, and with it the module, alive.
Operation launchOperation(LaunchRequest);

// The product; if it exceeds 32 bits, any number that does.
inline uint64_t blocksOf(const std::array<uint32_t, 3>& shape) {
  const uint64_t layer = uint64_t{shape[0]} * shape[1];
  return layer > UINT32_MAX ? layer : layer * shape[2];
}
// The cluster shape of the launch, or else of the function, or else one block. Refuses a shape that contradicts the function's.
std::array<uint32_t, 3> clusterOf(Function&, const std::array<uint32_t, 3>& asked);
// The number of the kernel's blocks that fit on one multiprocessor, by the rules of the device's architecture.
int residentBlocks(Function&, uint32_t blockThreads, uint64_t dynamicSharedBytes);

}  // namespace vgpu::emulator::api
