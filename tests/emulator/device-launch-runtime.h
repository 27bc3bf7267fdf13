// A device runtime without a driver, and a device whose kernels use it.
#pragma once

#include "device-launch-text.h"
#include "ptx-fixture.h"

#include "stub/emulator/ptx/run/device-runtime.h"
#include "stub/emulator/ptx/text/error.h"

namespace vgpu::emulator {

// Serves the module's own kernels; a test sets limits and attributes.
class TestRuntime : public DeviceRuntime {
 public:
  explicit TestRuntime(Module& module) : module(module) {}
  Found findKernel(uint64_t address) override {
    const std::string name(module.kernelNameAt(address));
    if (name.empty()) return {};
    try {
      return {module.findKernel(name), {}};
    } catch (const PtxError& error) {
      return {nullptr, "kernel " + name + ": " + error.what()};
    }
  }
  bool canLaunch(const Kernel&, const GridShape& shape) override {
    return shape.grid[0] != 0 && shape.block[0] != 0 && shape.block[0] <= 1024 && shape.dynamicSharedBytes <= 48 << 10;
  }
  uint32_t dynamicSharedLimit(const Kernel&) override { return 48 << 10; }
  int residentBlocks(const Kernel&, uint32_t, uint64_t) override { return 7; }
  int device() const override { return 2; }
  int deviceCount() const override { return 3; }
  std::optional<int> attribute(int which, int) const override { return which < 100 ? std::optional(which * 10) : std::nullopt; }
  std::optional<uint64_t> limit(int which) const override { return which == 4 ? std::optional(pendingLaunches) : std::nullopt; }

  uint64_t pendingLaunches = 2048;

 private:
  Module& module;
};

// A device whose launches use that runtime. Kernels write notes: a count at `notes`, followed by the words.
class LaunchingDevice : public Device {
 public:
  explicit LaunchingDevice(const std::string& kernels, std::string_view header = test::launchHeader)
      : Device(std::string(header) + kernels), runtime(*module), notes(upload(std::vector<uint32_t>(1 << 14))) {
    launch.runtime = &runtime;
    launch.maxInstructions = 200'000'000;
  }
  std::vector<uint32_t> noted() {
    const std::vector<uint32_t> words = download<uint32_t>(notes, 1 << 14);
    return {words.begin() + 1, words.begin() + 1 + words[0]};
  }

  TestRuntime runtime;
  uint64_t notes;
};

}  // namespace vgpu::emulator
