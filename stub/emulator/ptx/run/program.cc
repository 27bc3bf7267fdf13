#include "stub/emulator/ptx/run/program.h"

#include <cstring>

namespace vgpu::emulator {

void Function::spreadConstants() {
  size_t bytes = 0;
  for (const FrameConstant& constant : constants) bytes += size_t{constant.bytes} * laneCount;
  constantLanes.resize(bytes);
  for (const FrameConstant& constant : constants)
    for (int lane = 0; lane < laneCount; ++lane) {
      std::byte* cell = constantLanes.data() + constant.offset + size_t{constant.bytes} * lane;
      std::memcpy(cell, &constant.lo, std::min(constant.bytes, 8u));
      if (constant.bytes == 16) std::memcpy(cell + 8, &constant.hi, 8);
    }
}

std::span<const Parameter> parametersOf(const Kernel& kernel) { return kernel.parameters; }

KernelCalls callsOf(const Kernel& kernel) {
  KernelCalls calls;
  for (const std::unique_ptr<Function>& function : kernel.functions)
    for (const std::unique_ptr<CallSite>& site : function->calls) {
      const std::string_view name = site->calleeName;
      calls.launchKernels |= name.starts_with("__cudaCDP2LaunchDevice");
      calls.launchGraphs |= name == graphLaunchCall;
      calls.changeNodes |= name.starts_with("cudaGraphKernelNode");
    }
  return calls;
}

KernelAttributes attributesOf(const Kernel& kernel) { return kernel.attributes; }
std::string_view nameOf(const Kernel& kernel) { return kernel.name; }

}  // namespace vgpu::emulator
