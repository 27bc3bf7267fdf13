// Entries about devices that rows cannot express. The worker describes the devices once, when the session opens.
#include <strings.h>

#include "intercept/session/entry.h"

using namespace vgpu;
using namespace vgpu::client;

extern "C" {

VGPU_EXPORT CUresult CUDAAPI cuInit(unsigned int flags) {
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  return answerOf([] {
    Session::open();
    return CUDA_SUCCESS;
  });
}

VGPU_EXPORT CUresult CUDAAPI cuDeviceGetByPCIBusId(CUdevice* dev, const char* pciBusId) {
  return enterAny([&](Thread& thread) -> CUresult {
    if (dev == nullptr || pciBusId == nullptr) return CUDA_ERROR_INVALID_VALUE;
    auto& devices = thread.session.devices;
    for (size_t i = 0; i < devices.size(); ++i) {
      if (strcasecmp(devices[i].pciBusId.c_str(), pciBusId) != 0) continue;
      *dev = static_cast<CUdevice>(i);
      return CUDA_SUCCESS;
    }
    const bool isId = std::strspn(pciBusId, "0123456789abcdefABCDEF:.") == std::strlen(pciBusId) && *pciBusId != 0;
    return isId ? CUDA_ERROR_INVALID_DEVICE : CUDA_ERROR_INVALID_VALUE;
  });
}

}  // extern "C"
