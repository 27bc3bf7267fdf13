// By hand: copies (copy.h) and fills.
#include "cuda-handlers.h"
#include "stub/worker/copy.h"

namespace vgpu::stub {

// As copy3d the frame is posted; as copy3dBack a caller waits for it.
CUresult copy3d(Execution& on, const CopyFrame& p, Reply& reply) {
  CUstream stream = on.stream(p.getStream());
  if (CUresult error = issueCopy(on, p, stream)) return error;
  if (CUresult error = on.freeSlabAfter(stream, api::Place(p.getFrom()))) return error;
  if (!on.isSignalled()) return CUDA_SUCCESS;
  reply.leaveToGpu();
  return on.signal(stream, on.shared().slot(on.slotIndex()).done, on.sequence());
}

CUresult fill(Execution& on, const api::FrameReader<api::Cuda::FillParams>& p, Reply&) {
  uint64_t element = p.getElementBytes(), width = p.getWidth(), height = p.getHeight(), pitch = p.getPitch();
  if (CUresult bad = checkFill(on, p.getDestination(), pitch, element, width, height)) return bad;
  auto& driver = on.driver;
  CUdeviceptr to = p.getDestination();
  CUstream stream = on.stream(p.getStream());
  uint32_t value = p.getValue();
  if (height == 1) {
    switch (element) {
      case 1: return driver.cuMemsetD8Async(to, static_cast<unsigned char>(value), width, stream);
      case 2: return driver.cuMemsetD16Async(to, static_cast<unsigned short>(value), width, stream);
      case 4: return driver.cuMemsetD32Async(to, value, width, stream);
      default: return CUDA_ERROR_INVALID_VALUE;
    }
  }
  switch (element) {
    case 1: return driver.cuMemsetD2D8Async(to, pitch, static_cast<unsigned char>(value), width, height, stream);
    case 2: return driver.cuMemsetD2D16Async(to, pitch, static_cast<unsigned short>(value), width, height, stream);
    case 4: return driver.cuMemsetD2D32Async(to, pitch, value, width, height, stream);
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

}  // namespace vgpu::stub
