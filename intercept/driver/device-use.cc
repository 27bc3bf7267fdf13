// What NVML is asked of a device and CUDA is not (intercept/nvml/): for that library's face, which makes no context.
#include "intercept/driver/shared.h"
#include "intercept/session/call.h"

using namespace vgpu;
using namespace vgpu::client;

// How much of the device's memory is free, and whether work of this program's is outstanding there. A device that the program
// does not use yet is all free.
extern "C" VGPU_EXPORT CUresult cuVgpuDeviceUse(CUdevice device, uint64_t totalBytes, uint64_t* freeBytes, int* isBusy) {
  return enterAny([&](Thread& thread) -> CUresult {
    *freeBytes = totalBytes;
    *isBusy = 0;
    auto number = static_cast<unsigned>(device);
    if (!thread.session.hasDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
    if (!thread.session.contexts.isActive(number)) return CUDA_SUCCESS;
    *isBusy = !thread.session.progress[number].isIdle();
    Call<api::Cuda::MemGetInfoParams> frame(thread.on(number), api::Method::memGetInfo);
    if (CUresult error = frame.call()) return error;
    *freeBytes = frame.results<api::Cuda::MemGetInfoResults>().getFree() + thread.session.memory.freeBytes(number);
    return CUDA_SUCCESS;
  });
}
