// Functions that a program registers to be told when the memory that it may use of a device becomes less. What a session may use does
// not change while it runs, so none is ever called; handles are given and taken back as CUDA does.
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
  // Makes the handle `added` if that is not null, else ends `removed`. CUDA_ERROR_INVALID_VALUE if the device has none of that handle.
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
