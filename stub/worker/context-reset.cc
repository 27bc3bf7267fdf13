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
  throttles[device] = {};
}

CUresult Execution::resetContext() {
  unsigned device = current;
  // Registered memory goes with the context that registered it, and the other devices write into it.
  for (unsigned other = 0; other < deviceCount(); ++other) {
    if (other == device) continue;
    select(other);
    driver.cuCtxSynchronize();  // its own fault, where it has one, is told by its own calls
  }
  select(device);
  if (CUresult error = driver.cuDevicePrimaryCtxReset_v2(static_cast<CUdevice>(device))) return error;
  dropObjects(device);
  driver.cuDevicePrimaryCtxRelease_v2(static_cast<CUdevice>(device));  // a reset keeps the count of who retains it
  if (CUresult error = driver.cuDevicePrimaryCtxRetain(&contexts[device], static_cast<CUdevice>(device))) return error;
  current = maxDevices;
  select(device);
  if (registrar == device && isAttached())
    if (CUresult error = registerSegment(segment->base())) return error;
  if (CUresult error = pool.registerAgain(device)) return error;
  eventTimes.start(device);
  return CUDA_SUCCESS;
}

CUresult contextReset(Execution& on, api::Cuda::ContextResetParams::Reader p, Answer&) {
  if (p.getContext() != on.device()) return CUDA_ERROR_INVALID_DEVICE;
  if (CUresult error = on.resetContext()) return error;
  SegmentHeader& shared = on.shared().header();
  shared.deferred[on.device()].store(CUDA_SUCCESS);
  shared.fault[on.device()].store(CUDA_SUCCESS);
  return CUDA_SUCCESS;
}

}  // namespace vgpu::stub
