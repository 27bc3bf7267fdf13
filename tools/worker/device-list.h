// The node's devices, as reported by the driver.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "stub/driver/driver.h"

namespace vgpu::stub {

struct DeviceDescription {
  uint32_t ordinal = 0;
  std::string name, uuid;
  uint64_t memoryBytes = 0;
  size_t freeBytes = 0;
  bool readsHostMemory = false;  // kernels can access all memory of the process
};

// Throws kj::Exception if the driver does not initialize or has no device.
std::vector<DeviceDescription> listDevices(const stub::Driver& driver);

}  // namespace vgpu::stub
