// Facts about devices for our NVML (intercept/nvml/) that CUDA has no query for. These calls make no context.
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "intercept/nvml/device-links.h"
#include "intercept/session/call.h"
#include "intercept/session/entry.h"

using namespace vgpu;
using namespace vgpu::client;

namespace {

// Requests nothing for a device that the program does not use yet.
template <typename Ask>
CUresult ofUsedDevice(CUdevice device, Ask ask) {
  return enterAny([&](Thread& thread) -> CUresult {
    if (!thread.session.hasDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
    auto number = static_cast<unsigned>(device);
    return thread.session.contexts.isActive(number) ? ask(thread, number) : CUDA_SUCCESS;
  });
}

// Entry `place` of CUDA_VISIBLE_DEVICES, parsed as vgpud does (tools/vgpud/visible-devices.cc); `place` itself if it is not a number.
unsigned numberAt(unsigned place, const char* visible) {
  for (unsigned at = 0;; ++at) {
    char* end = nullptr;
    const auto number = static_cast<unsigned>(std::strtoll(visible, &end, 10));
    if (end == visible) return place;
    if (at == place) return number;
    visible = std::strchr(end, ',');
    if (visible == nullptr) return place;
    ++visible;
  }
}

}  // namespace

// Opens the session without initializing CUDA for the program: after NVML alone, a child made by fork() may still use CUDA.
extern "C" VGPU_EXPORT CUresult cuVgpuBegin() {
  if (Session::isForked()) return CUDA_ERROR_NOT_INITIALIZED;
  return answerOf([] { return Session::open(), CUDA_SUCCESS; });
}

// The device's number in CUDA_VISIBLE_DEVICES, which is its number on the node. If the variable is unset, or its entry for the device is
// not a number, the number within the session.
extern "C" VGPU_EXPORT CUresult cuVgpuDeviceNumber(CUdevice device, unsigned* number) {
  return enterAny([&](Thread& thread) -> CUresult {
    if (!thread.session.hasDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
    return *number = numberAt(static_cast<unsigned>(device), thread.session.visible.c_str()), CUDA_SUCCESS;
  });
}

// Whether work of this program is outstanding on the device.
extern "C" VGPU_EXPORT CUresult cuVgpuDeviceIsBusy(CUdevice device, int* isBusy) {
  *isBusy = 0;
  return ofUsedDevice(device, [&](Thread& thread, unsigned number) {
    *isBusy = !thread.session.progress[number].isIdle();
    return CUDA_SUCCESS;
  });
}

// The free bytes of the device's memory; `freeBytes` is unchanged if the program does not use the device yet.
extern "C" VGPU_EXPORT CUresult cuVgpuDeviceFree(CUdevice device, uint64_t* freeBytes) {
  return ofUsedDevice(device, [&](Thread& thread, unsigned number) -> CUresult {
    Call<api::Cuda::MemGetInfoParams> frame(thread.on(number), api::Method::memGetInfo);
    if (CUresult error = frame.call()) return error;
    *freeBytes = frame.results<api::Cuda::MemGetInfoResults>().getFree() + thread.session.memory.freeBytes(thread, number);
    return CUDA_SUCCESS;
  });
}

// The links of any device.
extern "C" VGPU_EXPORT CUresult cuVgpuDeviceLinks(CUdevice device, DeviceLinks* links) {
  return enterAny([&](Thread& thread) -> CUresult {
    if (!thread.session.hasDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
    Call<api::Cuda::DeviceLinksParams> frame(thread, api::Method::deviceLinks);
    frame->setDevice(static_cast<unsigned>(device));
    if (CUresult error = frame.call()) return error;
    auto results = frame.results<api::Cuda::DeviceLinksResults>();
    auto found = results.getLinks();
    *links = {results.getGeneration(), results.getWidth(), results.getBestGeneration(), results.getBestWidth(), 0, {}};
    links->count = static_cast<uint32_t>(std::min<size_t>(found.size() / sizeof(NvmlLink), nvmlMostLinks));
    std::memcpy(links->links, found.begin(), links->count * sizeof(NvmlLink));
    return CUDA_SUCCESS;
  });
}
