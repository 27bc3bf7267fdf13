// What the program may ask of a device, told once by the worker. The virtual GPU keeps it wherever it lands. Where the
// real GPU can do what a session cannot, the session's answer counts (device-info.cc).
#pragma once

#include <cuda.h>

#include <string>
#include <vector>

namespace vgpu::client {

struct DeviceInfo {
  std::string name, pciBusId;
  CUuuid uuid{};
  uint64_t totalBytes = 0;
  std::vector<int> attributes;  // by CUdevice_attribute
  int leastPriority = 0, greatestPriority = 0;

  int attribute(CUdevice_attribute which) const {
    auto index = static_cast<size_t>(which);
    return index < attributes.size() ? attributes[index] : 0;
  }

  // Puts what a session can do in place of what the GPU can.
  void limitToSession();
};

}  // namespace vgpu::client
