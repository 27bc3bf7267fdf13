// A fault ends every context of the driver's process for good. The program's cudaDeviceReset lets go of what there was on a
// device, and is answered with the fault as long as this process is the one in which it happened: another worker takes its
// place then, for which there is nothing to do.
#include "cuda-handlers.h"

namespace vgpu::stub {

CUresult contextReset(Execution& on, const api::FrameReader<api::Cuda::ContextResetParams>& p, Reply&) {
  if (p.getContext() != on.device()) return CUDA_ERROR_INVALID_DEVICE;
  CUresult fault = on.gpu.progress.fault();
  if (fault != CUDA_SUCCESS) on.end();
  return fault;
}

}  // namespace vgpu::stub
