// What the functions of NVML's face share: results, handles, and the structure that says where a device is on its bus.
#pragma once

#include <cuda.h>

#include "vgpu/base/nvml.h"

#define FACE extern "C" __attribute__((visibility("default")))

namespace vgpu::nvml {

enum Status : int {
  success = 0,
  uninitialized = 1,
  invalidArgument = 2,
  notSupported = 3,
  noPermission = 4,
  notFound = 6,
  insufficientSize = 7,
  driverNotLoaded = 9,
  versionMismatch = 25,
  unknown = 999
};

// The CUDA number of a handle's device; success, or why there is none, which is `result` null too.
Status find(const void* handle, const void* result, CUdevice& device);

// The device of a handle, by `body`, which is told its CUDA number.
template <typename Body>
int of(const void* handle, const void* result, Body&& body) {
  CUdevice device;
  if (Status error = find(handle, result, device)) return error;
  return body(device);
}

// Writes both texts from the numbers.
void nameAddress(NvmlPci& pci);

}  // namespace vgpu::nvml
