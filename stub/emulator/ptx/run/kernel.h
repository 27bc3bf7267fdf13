// What a launch needs to know of a kernel.
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
  uint32_t registers;      // an estimate, stable for a given text
  uint32_t ptxVersion;     // 75 for compute_75
  std::array<uint32_t, 3> cluster;  // that it must be launched with; zeros: any
  bool explicitCluster;             // and the launch must say which
};

struct Kernel;  // program.h

// What a kernel, or a function that it may call, asks CUDA for.
struct KernelCalls {
  bool launchKernels = false, launchGraphs = false, changeNodes = false;
};

std::span<const Parameter> parametersOf(const Kernel&);
KernelCalls callsOf(const Kernel&);
KernelAttributes attributesOf(const Kernel&);
std::string_view nameOf(const Kernel&);

}  // namespace vgpu::emulator
