// Callbacks that a program registers for a reduction of the device memory that it may use. A session's limit does not change while it runs,
// so none is ever called; handles are created and destroyed as in CUDA.
//
// Any thread. Stays in the program's process over a suspend.
#pragma once

#include <cuda.h>

#include <map>
#include <mutex>

#include "vgpu/api/wire-value.h"

namespace vgpu::client {

class Notifications {
 public:
  // Creates the handle `added`, or if that is null destroys `removed`. CUDA_ERROR_INVALID_VALUE if the device has no handle `removed`.
  CUresult change(CUdevice device, CUasyncCallbackHandle* added, CUasyncCallbackHandle removed) {
    std::lock_guard lock(mutex);
    if (added != nullptr) {
      devices.emplace(++made << 4, device);
      *added = fromWire<CUasyncCallbackHandle>(made << 4);
      return CUDA_SUCCESS;
    }
    auto found = devices.find(toWire(removed));
    if (found == devices.end() || found->second != device) return CUDA_ERROR_INVALID_VALUE;
    devices.erase(found);
    return CUDA_SUCCESS;
  }

 private:
  std::mutex mutex;
  std::map<uint64_t, CUdevice> devices;  // by handle
  uint64_t made = 0;
};

}  // namespace vgpu::client
