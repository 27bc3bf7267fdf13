#include "stub/emulator/stream/device-runtime.h"

#include "stub/emulator/driver/driver.h"
#include "stub/emulator/stream/launch.h"

namespace vgpu::emulator::api {

DeviceRuntime::Found ModuleRuntime::findKernel(uint64_t address) {
  const std::string name(module.module->kernelNameAt(address));
  if (name.empty()) return {};
  try {
    return {&module.decode(name), {}};
  } catch (const Refusal& refusal) {
    return {nullptr, "kernel " + name + ": " + refusal.message};
  }
}

// The same object as the one in which the host sets the kernel's attributes.
std::shared_ptr<Function> ModuleRuntime::functionOf(const Kernel& kernel) { return module.function(std::string(nameOf(kernel))); }

bool ModuleRuntime::canLaunch(const Kernel& kernel, const GridShape& shape) {
  const LaunchRequest request{
      .function = functionOf(kernel), .grid = shape.grid, .block = shape.block, .dynamicSharedBytes = shape.dynamicSharedBytes};
  return !attributesOf(kernel).explicitCluster && enterAlways([&] { checkLaunch(request); }) == CUDA_SUCCESS;
}

uint32_t ModuleRuntime::dynamicSharedLimit(const Kernel& kernel) { return functionOf(kernel)->dynamicSharedLimit(); }

int ModuleRuntime::residentBlocks(const Kernel& kernel, uint32_t blockThreads, uint64_t dynamicSharedBytes) {
  return api::residentBlocks(*functionOf(kernel), blockThreads, dynamicSharedBytes);
}

int ModuleRuntime::device() const { return module.context.device.ordinal(); }
int ModuleRuntime::deviceCount() const { return module.context.driver.deviceCount(); }

// cudaDeviceAttr has the driver API's numbers.
std::optional<int> ModuleRuntime::attribute(int which, int device) const {
  std::optional<int> value;
  enterAlways([&] { value = module.context.driver.device(device).attribute(static_cast<CUdevice_attribute>(which)); });
  return value;
}

// cudaLimit has the driver API's numbers, too.
std::optional<uint64_t> ModuleRuntime::limit(int which) const {
  std::optional<uint64_t> value;
  enterAlways([&] { value = module.context.limit(static_cast<CUlimit>(which)); });
  return value;
}

}  // namespace vgpu::emulator::api
