// By hand: copies (copy.h) and fills.
#include <optional>

#include "cuda-handlers.h"
#include "stub/worker/copy.h"
#include "vgpu/api/place.h"

namespace vgpu::stub {

namespace {

// The slab that a frame's bytes come from, which the program has lent: given back when the GPU has read it, or at once if it
// never will.
class SourceSlab {
 public:
  SourceSlab(Execution& on, api::Place source) : on(on) {
    if (source.type() == api::PlaceType::SLAB && source.value() < slabCount) slab = static_cast<uint32_t>(source.value());
  }
  ~SourceSlab() {
    if (slab) on.shared().slabState(*slab).busy.store(0, std::memory_order_release);
  }
  SourceSlab(const SourceSlab&) = delete;
  SourceSlab& operator=(const SourceSlab&) = delete;

  CUresult giveBackBehind(CUstream stream) {
    CUresult result = slab ? on.freeSlabAfter(stream, *slab) : CUDA_SUCCESS;
    if (result == CUDA_SUCCESS) slab.reset();
    return result;
  }

 private:
  Execution& on;
  std::optional<uint32_t> slab;
};

}  // namespace

// Posted, and as copy3dBack waited for.
CUresult copy3d(Execution& on, const CopyFrame& p, Reply& reply) {
  SourceSlab slab(on, api::Place(p.getFrom()));
  CUstream stream = on.stream(p.getStream());
  if (CUresult error = issueCopy(on, p, stream)) return error;
  if (CUresult error = slab.giveBackBehind(stream)) return error;
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
