// Entries about devices that rows cannot express. The worker describes the devices once, when the session opens.
#include "intercept/session/entry.h"

using namespace vgpu;
using namespace vgpu::client;

extern "C" {

VGPU_EXPORT CUresult CUDAAPI cuInit(unsigned int flags) {
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (Session::isForked()) return CUDA_ERROR_NOT_INITIALIZED;
  return answerOf([] {
    Session::open().isInitialized.store(true, std::memory_order_relaxed);
    return CUDA_SUCCESS;
  });
}

VGPU_EXPORT CUresult CUDAAPI cuDeviceGetByPCIBusId(CUdevice* dev, const char* pciBusId) {
  return enterAny([&](Thread& thread) -> CUresult {
    if (dev == nullptr || pciBusId == nullptr) return CUDA_ERROR_INVALID_VALUE;
    auto wanted = BusPlace::of(pciBusId);
    if (!wanted) return CUDA_ERROR_INVALID_VALUE;
    auto& devices = thread.session.devices;
    for (size_t i = 0; i < devices.size(); ++i)
      if (BusPlace::of(devices[i].pciBusId.c_str()) == wanted) return *dev = static_cast<CUdevice>(i), CUDA_SUCCESS;
    return CUDA_ERROR_INVALID_DEVICE;
  });
}

}  // extern "C"
