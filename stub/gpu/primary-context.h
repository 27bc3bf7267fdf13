// A device's primary context, retained from take() on.
#pragma once

#include "stub/driver/driver.h"

namespace vgpu::stub {

class PrimaryContext {
 public:
  PrimaryContext(const Driver& driver, unsigned device) : driver(driver), device(driver.device(device)) {}
  ~PrimaryContext() {
    if (context != nullptr) driver.cuDevicePrimaryCtxRelease_v2(device);
  }
  PrimaryContext(const PrimaryContext&) = delete;
  PrimaryContext& operator=(const PrimaryContext&) = delete;

  // Call once. CUDA's result.
  CUresult take() { return driver.cuDevicePrimaryCtxRetain(&context, device); }
  bool isTaken() const { return context != nullptr; }

  // Makes it current for the calling thread. CUDA's result.
  CUresult select() const { return driver.cuCtxSetCurrent(context); }
  CUcontext get() const { return context; }

 private:
  const Driver& driver;
  const CUdevice device;
  CUcontext context = nullptr;
};

}  // namespace vgpu::stub
