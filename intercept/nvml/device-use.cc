// What NVML is asked of a device and CUDA is not (intercept/nvml/): for that library's face, which makes no context.
#include "intercept/driver/shared.h"
#include "intercept/session/call.h"

using namespace vgpu;
using namespace vgpu::client;

namespace {

// Nothing is asked of a device that the program does not use yet.
template <typename Ask>
CUresult ofUsedDevice(CUdevice device, Ask ask) {
  return enterAny([&](Thread& thread) -> CUresult {
    if (!thread.session.hasDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
    auto number = static_cast<unsigned>(device);
    return thread.session.contexts.isActive(number) ? ask(thread, number) : CUDA_SUCCESS;
  });
}

}  // namespace

// Whether work of this program is outstanding on the device.
extern "C" VGPU_EXPORT CUresult cuVgpuDeviceIsBusy(CUdevice device, int* isBusy) {
  *isBusy = 0;
  return ofUsedDevice(device, [&](Thread& thread, unsigned number) {
    *isBusy = !thread.session.progress[number].isIdle();
    return CUDA_SUCCESS;
  });
}

// How much of the device's memory is free, in bytes; `freeBytes` stays as it is if the program does not use the device yet.
extern "C" VGPU_EXPORT CUresult cuVgpuDeviceFree(CUdevice device, uint64_t* freeBytes) {
  return ofUsedDevice(device, [&](Thread& thread, unsigned number) -> CUresult {
    Call<api::Cuda::MemGetInfoParams> frame(thread.on(number), api::Method::memGetInfo);
    if (CUresult error = frame.call()) return error;
    *freeBytes = frame.results<api::Cuda::MemGetInfoResults>().getFree() + thread.session.memory.freeBytes(number);
    return CUDA_SUCCESS;
  });
}
