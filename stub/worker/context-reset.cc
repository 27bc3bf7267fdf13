// A new context in place of one that a fault has ended: what CUDA's cudaDeviceReset does, in the same process. What the
// session has in common with the other devices, the registered shared memory, must come out of it as it went in.
#include "cuda-handlers.h"

namespace vgpu::stub {

void Execution::dropObjects(unsigned device) {
  for (api::Kind kind : {api::Kind::MODULE, api::Kind::FUNCTION, api::Kind::VARIABLE, api::Kind::STREAM, api::Kind::EVENT,
                         api::Kind::ARRAY, api::Kind::MIPMAPPED_ARRAY, api::Kind::TEXTURE, api::Kind::SURFACE})
    handles.removeOf(kind, device);
  textures.forgetAll(device);
  auto isOfDevice = [&](auto& entry) { return handleDevice(entry.first) == device; };
  std::erase_if(modules, isOfDevice);
  std::erase_if(arrays, isOfDevice);
  std::erase_if(functions, isOfDevice);
  std::erase_if(variables, isOfDevice);
  eventTimes.forgetAll(device);
}

CUresult Execution::resetContext() {
  unsigned device = current;
  auto number = static_cast<CUdevice>(device);
  CUresult result = driver.cuDevicePrimaryCtxReset_v2(number);
  dropObjects(device);
  driver.cuDevicePrimaryCtxRelease_v2(number);  // a reset keeps the count of who retains it
  current = maxDevices;
  if (result == CUDA_SUCCESS) result = driver.cuDevicePrimaryCtxRetain(&contexts[device], number);
  if (result == CUDA_SUCCESS) {
    select(device);
    if (registrar == device && isAttached()) result = registerSegment(segment->base());
    if (result == CUDA_SUCCESS) result = pool.registerAgain(device);
    if (result == CUDA_SUCCESS) result = progressOf[device]->start();
  }
  if (result == CUDA_SUCCESS) {
    eventTimes.start(device);
  } else {
    endedDevices |= 1u << device;
    progressOf[device]->fail(result);
    current = maxDevices;
  }
  return result;
}

// Registered memory goes with the context that registered it, and the other devices write into it: a reset waits for them.
CUresult contextReset(Execution& on, const api::FrameReader<api::Cuda::ContextResetParams>& p, Answer& answer) {
  unsigned device = on.device();
  if (p.getContext() != device) return CUDA_ERROR_INVALID_DEVICE;
  std::vector<Mark> outstanding;
  if (CUresult error = on.findOutstanding(outstanding)) return error;
  if (!outstanding.empty() || on.later.has(device)) {
    answer.postpone(std::move(outstanding));
    return CUDA_SUCCESS;
  }
  if (CUresult error = on.resetContext()) return error;
  SegmentHeader& shared = on.shared().header();
  shared.deferred[device].store(CUDA_SUCCESS);
  shared.fault[device].store(CUDA_SUCCESS);
  return CUDA_SUCCESS;
}

}  // namespace vgpu::stub
