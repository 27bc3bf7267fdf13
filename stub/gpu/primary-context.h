// A device's primary context, which lives while one of these does.
#pragma once

#include "stub/driver/driver.h"

namespace vgpu::stub {

class PrimaryContext {
 public:
  // Throws kj::Exception.
  PrimaryContext(const Driver& driver, unsigned device) : driver(driver), device(static_cast<CUdevice>(device)) {
    require(driver, driver.cuDevicePrimaryCtxRetain(&context, this->device), "creating a context");
  }
  ~PrimaryContext() { driver.cuDevicePrimaryCtxRelease_v2(device); }
  PrimaryContext(const PrimaryContext&) = delete;
  PrimaryContext& operator=(const PrimaryContext&) = delete;

  // Makes it the calling thread's. CUDA's answer.
  CUresult select() const { return driver.cuCtxSetCurrent(context); }
  CUcontext get() const { return context; }

 private:
  const Driver& driver;
  const CUdevice device;
  CUcontext context = nullptr;
};

}  // namespace vgpu::stub
