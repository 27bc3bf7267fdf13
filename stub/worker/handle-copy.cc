// By hand: bytes between the host's side and the device. Every address is checked against what
// the session owns: the worker's process holds nothing else worth reading, but a copy must not become a probe of it.
#include "cuda-handlers.h"

namespace vgpu::stub {

CUresult copyInline(Execution& on, const api::FrameReader<api::Cuda::CopyInlineParams>& p, Reply&) {
  auto data = p.getData();
  if (!on.ownsMemory(p.getDestination(), data.size())) return CUDA_ERROR_INVALID_VALUE;
  return on.driver.cuMemcpyHtoDAsync_v2(p.getDestination(), data.begin(), data.size(), on.stream(p.getStream()));
}

CUresult copyFromSlab(Execution& on, const api::FrameReader<api::Cuda::CopyFromSlabParams>& p, Reply&) {
  if (p.getSlab() >= slabCount || p.getBytes() > slabBytes) return CUDA_ERROR_INVALID_VALUE;
  CUstream stream = on.stream(p.getStream());
  CUresult result = CUDA_ERROR_INVALID_VALUE;
  if (on.ownsMemory(p.getDestination(), p.getBytes()))
    result = on.driver.cuMemcpyHtoDAsync_v2(p.getDestination(), on.shared().slab(p.getSlab()), p.getBytes(), stream);
  CUresult freed = result == CUDA_SUCCESS ? on.freeSlabAfter(stream, p.getSlab()) : result;
  if (freed != CUDA_SUCCESS) on.shared().slabState(p.getSlab()).busy.store(0, std::memory_order_release);
  return result;
}

CUresult copyToSlab(Execution& on, const api::FrameReader<api::Cuda::CopyToSlabParams>& p, Reply& reply) {
  if (p.getSlab() >= slabCount || p.getBytes() > slabBytes || !on.ownsMemory(p.getSource(), p.getBytes()))
    return CUDA_ERROR_INVALID_VALUE;
  CUstream stream = on.stream(p.getStream());
  auto* slab = on.shared().slab(p.getSlab());
  if (CUresult error = on.driver.cuMemcpyDtoHAsync_v2(slab, p.getSource(), p.getBytes(), stream)) return error;
  reply.leaveToGpu();
  return on.signal(stream, on.shared().slot(on.slotIndex()).done, on.sequence());
}

CUresult copyToSlot(Execution& on, const api::FrameReader<api::Cuda::CopyToSlotParams>& p, Reply& reply) {
  if (on.slotIndex() >= replyCount || p.getBytes() > replyBytes || !on.ownsMemory(p.getSource(), p.getBytes()))
    return CUDA_ERROR_INVALID_VALUE;
  CUstream stream = on.stream(p.getStream());
  std::byte* into = on.shared().reply(on.slotIndex());
  if (CUresult error = on.driver.cuMemcpyDtoHAsync_v2(into, p.getSource(), p.getBytes(), stream)) return error;
  reply.leaveToGpu();
  return on.signal(stream, on.shared().slot(on.slotIndex()).done, on.sequence());
}

CUresult copy(Execution& on, const api::FrameReader<api::Cuda::CopyParams>& p, Reply&) {
  if (!on.ownsMemory(p.getDestination(), p.getBytes()) || !on.ownsMemory(p.getSource(), p.getBytes()))
    return CUDA_ERROR_INVALID_VALUE;
  return on.driver.cuMemcpyAsync(p.getDestination(), p.getSource(), p.getBytes(), on.stream(p.getStream()));
}

CUresult fill(Execution& on, const api::FrameReader<api::Cuda::FillParams>& p, Reply&) {
  uint64_t element = p.getElementBytes(), width = p.getWidth(), height = p.getHeight(), pitch = p.getPitch();
  if (width > deviceArenaBytes || height > deviceArenaBytes || pitch > deviceArenaBytes || height == 0)
    return CUDA_ERROR_INVALID_VALUE;
  unsigned __int128 bytes = static_cast<unsigned __int128>(height - 1) * pitch + width * element;
  if (bytes > deviceArenaBytes || !on.ownsMemory(p.getDestination(), static_cast<uint64_t>(bytes)))
    return CUDA_ERROR_INVALID_VALUE;
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
