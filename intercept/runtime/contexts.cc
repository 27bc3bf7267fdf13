// Which context a call runs in, and the primary contexts that the process retains.
#include <array>
#include <mutex>
#include <vector>

#include "intercept/runtime/answer.h"
#include "intercept/runtime/message.h"
#include "intercept/runtime/process.h"
#include "intercept/runtime/registry.h"

namespace vgpu::runtime {
namespace {

struct Slot {
  CUcontext context = nullptr;  // null: the slot is free, or the primary context is not retained
  CUcontext before = nullptr;   // slot of a device: its primary context when it was last retained
  LaunchLimits limits = {};
};
constinit std::mutex contextLock;
constinit std::array<Slot, maxSlots> slots = {};

/// The devices that a thread tries if it has not chosen one: the first device, unless the program calls cudaSetValidDevices.
struct ValidDevices {
  std::array<int, maxDevices> devices = {};
  int count = 1;
};
constinit ValidDevices validDevices = {};

ValidDevices copyValidDevices() {
  std::lock_guard lock(contextLock);
  return validDevices;
}

CUresult readLimits(CUdevice device, LaunchLimits& limits) {
  struct Row {
    CUdevice_attribute attribute;
    unsigned* limit;
  } rows[] = {
      {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, &limits.block[0]},
      {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, &limits.block[1]},
      {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, &limits.block[2]},
      {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, &limits.grid[0]},
      {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, &limits.grid[1]},
      {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, &limits.grid[2]},
      {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, &limits.threads},
  };
  for (auto& [attribute, limit] : rows) {
    int value = 0;
    if (CUresult result = cuDeviceGetAttribute(&value, attribute, device); result != CUDA_SUCCESS) return result;
    *limit = value;
  }
  return CUDA_SUCCESS;
}

/// Retains the device's primary context, once for the process. Under contextLock.
CUresult holdPrimary(int ordinal) {
  Slot& slot = slots[ordinal];
  if (slot.context != nullptr) return CUDA_SUCCESS;
  CUdevice device;
  if (CUresult result = cuDeviceGet(&device, ordinal); result != CUDA_SUCCESS) return result;
  if (CUresult result = readLimits(device, slot.limits); result != CUDA_SUCCESS) return result;
  CUcontext context = nullptr;
  if (CUresult result = cuDevicePrimaryCtxRetain(&context, device); result != CUDA_SUCCESS) return result;
  slot.context = slot.before = context;
  return CUDA_SUCCESS;
}

/// The ordinal whose handle is `device`, or -1.
int ordinalOf(CUdevice device) {
  int count = 0;
  if (cuDeviceGetCount(&count) != CUDA_SUCCESS) return -1;
  for (int ordinal = 0; ordinal < count && ordinal < maxDevices; ++ordinal) {
    CUdevice handle;
    if (cuDeviceGet(&handle, ordinal) == CUDA_SUCCESS && handle == device) return ordinal;
  }
  return -1;
}

/// The context that owns the kernels and variables of the current one: a green context shares those of its primary context.
CUcontext ownerOf(CUcontext current) {
  CUcontext regular = nullptr;
  CUgreenCtx green = nullptr;
  return cuStreamGetCtx_v2(CU_STREAM_LEGACY, &regular, &green) == CUDA_SUCCESS && green != nullptr ? regular : current;
}

/// The slot of `current`, a context that this thread has not used before. Under contextLock.
CUresult findSlot(CUcontext current, int& found) {
  for (found = 0; found < maxSlots; ++found)
    if (slots[found].context == current) return CUDA_SUCCESS;
  CUdevice device;
  if (CUresult result = cuCtxGetDevice(&device); result != CUDA_SUCCESS) return result;
  int ordinal = ordinalOf(device);
  if (ordinal < 0) return CUDA_ERROR_INVALID_DEVICE;
  unsigned flags;
  int active = 0;
  cuDevicePrimaryCtxGetState(device, &flags, &active);
  if (active != 0 && slots[ordinal].context == nullptr) {  // the program retained it through the driver API
    if (CUresult result = holdPrimary(ordinal); result != CUDA_SUCCESS) return result;
    if (slots[ordinal].context == current) return found = ordinal, CUDA_SUCCESS;
  }
  const CUcontext owner = ownerOf(current);
  if (owner != current)
    for (found = 0; found < maxSlots; ++found)
      if (slots[found].context == owner) return CUDA_SUCCESS;
  for (found = maxDevices; found < maxSlots; ++found)
    if (slots[found].context == nullptr) {
      slots[found].context = owner;
      return readLimits(device, slots[found].limits);
    }
  return CUDA_ERROR_NOT_SUPPORTED;
}

/// Frees the slots of contexts that the program has destroyed.
void forgetDestroyed() {
  for (int slot = maxDevices; slot < maxSlots; ++slot) {
    CUcontext context = contextOf(slot);
    unsigned version;
    if (context == nullptr || cuCtxGetApiVersion(context, &version) == CUDA_SUCCESS) continue;
    forgetSlot(slot);  // takes the modules' locks, which come before contextLock
    std::lock_guard lock(contextLock);
    slots[slot].context = nullptr;
    epoch.fetch_add(1);
  }
}

/// The device whose primary context `current` was before a reset; -1 if none. In threads other than the one that called the reset the old
/// context is still current; their next call makes the primary context again, as in that thread.
int findReset(CUcontext current) {
  std::lock_guard lock(contextLock);
  for (int ordinal = 0; ordinal < maxDevices; ++ordinal)
    if (slots[ordinal].context == nullptr && slots[ordinal].before == current) return ordinal;
  return -1;
}

cudaError_t tooManyContexts() {
  static constinit std::atomic<bool> said = false;
  if (!said.exchange(true))
    say({"the program has more than 32 contexts of its own; CUDA runtime calls in further ones fail"});
  return cudaErrorNotSupported;
}

cudaError_t use(CUcontext context, int slot) {
  thread.context = context;
  thread.slot = slot;
  thread.epoch = epoch.load();
  return cudaSuccess;
}

/// Makes a device's primary context current.
cudaError_t enterPrimary(int ordinal) {
  std::lock_guard lock(contextLock);
  if (ordinal < 0 || ordinal >= maxDevices) return cudaErrorInvalidDevice;
  if (CUresult result = holdPrimary(ordinal); result != CUDA_SUCCESS) return answer(result);
  if (CUresult result = cuCtxSetCurrent(slots[ordinal].context); result != CUDA_SUCCESS) return answer(result);
  return use(slots[ordinal].context, ordinal);
}

/// The context of a thread that has chosen no device: that of the first valid device that can be used.
cudaError_t enterDefault() {
  cudaError_t error = cudaSuccess;
  ValidDevices valid = copyValidDevices();
  for (int i = 0; i < valid.count; ++i)
    if (error = enterPrimary(valid.devices[i]); error == cudaSuccess) return thread.device = valid.devices[i], error;
  return error;
}

}  // namespace

cudaError_t adoptContext(CUcontext current) {
  if (current == nullptr) return thread.device < 0 ? enterDefault() : enterPrimary(thread.device);
  if (int ordinal = findReset(current); ordinal >= 0) return enterPrimary(ordinal);
  for (bool again = false;; again = true) {
    std::unique_lock lock(contextLock);
    int slot;
    CUresult result = findSlot(current, slot);
    if (result == CUDA_SUCCESS) return use(current, slot);
    if (result != CUDA_ERROR_NOT_SUPPORTED) return answer(result);
    if (again) return tooManyContexts();
    lock.unlock();
    forgetDestroyed();
  }
}

cudaError_t currentDevice(int& device) {
  CUcontext current = nullptr;
  CUdevice handle;
  cuCtxGetCurrent(&current);
  if (current != nullptr && current == thread.context && thread.slot < maxDevices && thread.epoch == epoch.load()) {
    device = thread.slot;
  } else if (current != nullptr && cuCtxGetDevice(&handle) == CUDA_SUCCESS) {
    device = ordinalOf(handle);
  } else {
    device = thread.device < 0 ? copyValidDevices().devices[0] : thread.device;
  }
  return cudaSuccess;
}

cudaError_t chooseDevice(int device) {
  int count = 0;
  if (CUresult result = cuDeviceGetCount(&count); result != CUDA_SUCCESS) return answer(result);
  if (device < 0 || device >= count) return cudaErrorInvalidDevice;
  if (cudaError_t error = enterPrimary(device); error != cudaSuccess) return error;
  thread.device = device;
  return cudaSuccess;
}

cudaError_t holdDevice(int device) {
  int count = 0;
  if (CUresult result = cuDeviceGetCount(&count); result != CUDA_SUCCESS) return answer(result);
  if (device < 0 || device >= count || device >= maxDevices) return cudaErrorInvalidDevice;
  std::lock_guard lock(contextLock);
  return answer(holdPrimary(device));
}

cudaError_t setValidDevices(const int* devices, int count) {
  int present = 0;
  if (CUresult result = cuDeviceGetCount(&present); result != CUDA_SUCCESS) return answer(result);
  if (count < 0 || count > present || (count > 0 && devices == nullptr)) return cudaErrorInvalidValue;
  for (int i = 0; i < count; ++i)
    if (devices[i] < 0 || devices[i] >= present) return cudaErrorInvalidDevice;
  ValidDevices chosen;
  for (int i = 0; i < count; ++i) chosen.devices[i] = devices[i];
  if (count > 0) chosen.count = count;
  std::lock_guard lock(contextLock);
  validDevices = chosen;
  return cudaSuccess;
}

cudaError_t resetDevice() {
  int ordinal;
  if (cudaError_t error = currentDevice(ordinal); error != cudaSuccess) return error;
  CUdevice device;
  if (CUresult result = cuDeviceGet(&device, ordinal); result != CUDA_SUCCESS) return answer(result);
  forgetSlot(ordinal);  // takes the modules' locks, which come before contextLock
  bool held;
  {
    std::lock_guard lock(contextLock);
    held = slots[ordinal].context != nullptr;
    slots[ordinal].context = nullptr;
    epoch.fetch_add(1);
  }
  cuCtxSetCurrent(nullptr);
  // Called without a lock: the reset may wait for work that ends only when another thread calls.
  CUresult result = cuDevicePrimaryCtxReset(device);
  if (held) cuDevicePrimaryCtxRelease(device);
  return answer(result);
}

const LaunchLimits& launchLimits(int slot) { return slots[slot].limits; }

CUcontext contextOf(int slot) {
  std::lock_guard lock(contextLock);
  return slots[slot].context;
}

}  // namespace vgpu::runtime
