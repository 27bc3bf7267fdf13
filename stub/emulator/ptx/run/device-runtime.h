// The driver's interface for CUDA's device runtime, the CUDA calls that kernels make. Implements the second version of dynamic parallelism,
// "CDP2", the only one on compute capability 9.0 (CUDA Programming Guide, "CUDA Dynamic Parallelism").
//
// Called by many threads at once while kernels run. Owned by the driver; keeps nothing after a launch.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "stub/emulator/ptx/run/kernel.h"

namespace vgpu::emulator {

struct GridShape {
  std::array<uint32_t, 3> grid{1, 1, 1}, block{1, 1, 1};
  uint32_t dynamicSharedBytes = 0;
};

class DeviceRuntime {
 public:
  struct Found {
    const Kernel* kernel = nullptr;  // nullptr: there is none at the address, or it cannot be decoded
    std::string problem;             // why it cannot be decoded
  };
  virtual ~DeviceRuntime() = default;
  // The kernel of the launching module that has this address.
  virtual Found findKernel(uint64_t address) = 0;
  // Whether a launch of this shape is valid, by the rules for launches by the host.
  virtual bool canLaunch(const Kernel&, const GridShape&) = 0;
  virtual uint32_t dynamicSharedLimit(const Kernel&) = 0;
  virtual int residentBlocks(const Kernel&, uint32_t blockThreads, uint64_t dynamicSharedBytes) = 0;
  virtual int device() const = 0;
  virtual int deviceCount() const = 0;
  // By the numbers of cudaDeviceAttr and cudaLimit; nothing for an unknown number.
  virtual std::optional<int> attribute(int which, int device) const = 0;
  virtual std::optional<uint64_t> limit(int which) const = 0;
};

}  // namespace vgpu::emulator
