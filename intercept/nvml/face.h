// What the NVML functions share: results, handles, and the structure with a device's PCI address.
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

// The CUDA number of a handle's device. Fails if the handle is invalid or `result`, the caller's output, is null.
Status find(const void* handle, const void* result, CUdevice& device);

// Runs `body` with the CUDA number of the handle's device.
template <typename Body>
int of(const void* handle, const void* result, Body&& body) {
  CUdevice device;
  if (Status error = find(handle, result, device)) return error;
  return body(device);
}

// Writes both texts of the PCI address from its numbers.
void nameAddress(NvmlPci& pci);

}  // namespace vgpu::nvml
