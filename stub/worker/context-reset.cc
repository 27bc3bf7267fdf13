// A fault ends every context of the driver's process for good. The program's cudaDeviceReset discards its objects on a device, and returns
// the fault as long as the session is in the process in which it happened; then another worker takes over, in which the reset has nothing
// to do.
#include "cuda-handlers.h"

namespace vgpu::stub {

CUresult contextReset(Execution& on, const api::FrameReader<api::Cuda::ContextResetParams>& p, Reply&) {
  if (p.getContext() != on.device()) return CUDA_ERROR_INVALID_DEVICE;
  CUresult fault = on.gpu.progress.fault();
  if (fault != CUDA_SUCCESS) on.end();
  return fault;
}

}  // namespace vgpu::stub
