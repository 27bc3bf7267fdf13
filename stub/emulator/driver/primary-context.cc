// The context that all users of a device share: created by the first retain, destroyed by the last release.
#include "stub/emulator/driver/driver.h"

using namespace vgpu::emulator::api;

namespace {

void endPrimary(Driver::Primary& primary) {
  if (auto context = std::exchange(primary.context, nullptr)) context->destroy();
}

}  // namespace

CUresult CUDAAPI cuDevicePrimaryCtxRetain(CUcontext* handle, CUdevice ordinal) {
  return enterDriver([&](Driver& driver) {
    require(handle != nullptr);
    Device& device = driver.device(ordinal);
    std::lock_guard lock(driver.lifeMutex);
    Driver::Primary& primary = driver.primary(device);
    if (!primary.context) primary.context = driver.createContext(device, primary.flags, true, primary.handle);
    primary.handle = primary.context->handle;
    ++primary.retained;
    *handle = primary.context->handle;
  });
}

CUresult CUDAAPI cuDevicePrimaryCtxRelease_v2(CUdevice ordinal) {
  return enterDriver([&](Driver& driver) {
    Driver::Primary& primary = driver.primary(driver.device(ordinal));
    std::lock_guard lock(driver.lifeMutex);
    if (primary.retained == 0) refuse(CUDA_ERROR_INVALID_CONTEXT);
    if (--primary.retained == 0) endPrimary(primary);
  });
}

CUresult CUDAAPI cuDevicePrimaryCtxReset_v2(CUdevice ordinal) {
  return enterDriver([&](Driver& driver) {
    Driver::Primary& primary = driver.primary(driver.device(ordinal));
    std::lock_guard lock(driver.lifeMutex);
    endPrimary(primary);  // users that retained it must still release it
  });
}

CUresult CUDAAPI cuDevicePrimaryCtxSetFlags_v2(CUdevice ordinal, unsigned flags) {
  return enterDriver([&](Driver& driver) {
    require((flags & ~unsigned{CU_CTX_FLAGS_MASK}) == 0);
    Driver::Primary& primary = driver.primary(driver.device(ordinal));
    std::lock_guard lock(driver.lifeMutex);
    primary.flags = flags;
    if (primary.context) primary.context->flags = flags;
  });
}

CUresult CUDAAPI cuDevicePrimaryCtxGetState(CUdevice ordinal, unsigned* flags, int* active) {
  return enterDriver([&](Driver& driver) {
    require(flags != nullptr && active != nullptr);
    Driver::Primary& primary = driver.primary(driver.device(ordinal));
    std::lock_guard lock(driver.lifeMutex);
    *flags = primary.flags;
    *active = primary.context != nullptr;
  });
}
