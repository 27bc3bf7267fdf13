// The driver's implementation of CUDA calls by the kernels of one launch.
#pragma once

#include "stub/emulator/module/loaded-module.h"
#include "stub/emulator/ptx/run/device-runtime.h"

namespace vgpu::emulator::api {

// For a launch of a kernel of `module`, which must outlive it. Any thread may call.
class ModuleRuntime : public DeviceRuntime {
 public:
  explicit ModuleRuntime(LoadedModule& module) : module(module) {}
  Found findKernel(uint64_t address) override;
  bool canLaunch(const Kernel&, const GridShape&) override;
  uint32_t dynamicSharedLimit(const Kernel&) override;
  int residentBlocks(const Kernel&, uint32_t blockThreads, uint64_t dynamicSharedBytes) override;
  int device() const override;
  int deviceCount() const override;
  std::optional<int> attribute(int which, int device) const override;
  std::optional<uint64_t> limit(int which) const override;

 private:
  std::shared_ptr<Function> functionOf(const Kernel&);

  LoadedModule& module;
};

}  // namespace vgpu::emulator::api
