// Properties of a kernel that a launch needs.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace vgpu::emulator {

struct Parameter {
  uint32_t offset, bytes;  // in the kernel's parameter block
};

struct KernelAttributes {
  uint32_t maxThreadsPerBlock;  // from .maxntid/.reqntid, else 1024
  uint32_t staticSharedBytes;
  uint32_t localBytes;     // a thread's stack frame
  uint32_t constantBytes;  // the module's constant bank
  uint32_t registers;      // an estimate, always the same for a given text
  uint32_t ptxVersion;     // 75 for compute_75
  std::array<uint32_t, 3> cluster;  // required at launch; zeros: any
  bool explicitCluster;             // the launch must give the cluster explicitly
};

struct Kernel;  // program.h

// The CUDA calls that a kernel, or a function that it may call, makes.
struct KernelCalls {
  bool launchKernels = false, launchGraphs = false, changeNodes = false;
};

std::span<const Parameter> parametersOf(const Kernel&);
KernelCalls callsOf(const Kernel&);
KernelAttributes attributesOf(const Kernel&);
std::string_view nameOf(const Kernel&);

}  // namespace vgpu::emulator
