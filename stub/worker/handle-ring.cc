// By hand: the rings themselves, and what comes after a frame of another ring.
#include "cuda-handlers.h"

namespace vgpu::stub {

// Making a context takes the driver tenths of a second, in which the first ring goes on. After a fault none is made any more, on no
// device: the ring is consumed all the same, because the program says there that it gives its objects up.
CUresult openRing(Execution& on, const api::FrameReader<api::Cuda::OpenRingParams>& p, Reply& reply) {
  const unsigned device = p.getDevice();
  if (on.device() != 0 || device >= on.session.deviceCount()) return CUDA_ERROR_INVALID_DEVICE;
  auto begin = [&on, device] {
    if (on.gpu.progress.fault() != CUDA_SUCCESS) return CUDA_SUCCESS;
    std::lock_guard noOtherLoads(on.session.moduleLoading);  // a context takes of the driver's addresses too
    return on.session.use(device);
  };
  auto start = [&on, device](CUresult result, Reply&) {
    if (isSticky(result)) on.session.noteFault(result);
    if (result != CUDA_SUCCESS && !isSticky(result)) return result;
    on.session.startThread(device);
    return CUDA_SUCCESS;
  };
  reply.putOff({begin, start});
  return CUDA_SUCCESS;
}

// Executed when its condition holds: RingConsumer waits for that.
CUresult awaitRing(Execution& on, const api::FrameReader<api::Cuda::AwaitRingParams>& p, Reply&) {
  bool isOther = p.getDevice() < on.session.deviceCount() && p.getDevice() != on.device();
  return isOther ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

// A frame before it has awaited the record's ring, so that the record has been issued: this stream waits for work of the other
// GPU that no thread of ours can hold up. The word is read by the GPU; that GPU writes it after a fence for all of the system.
CUresult streamAwaitRecord(Execution& on, const api::FrameReader<api::Cuda::StreamAwaitRecordParams>& p, Reply&) {
  if (p.getLine() >= completionWordCount) return CUDA_ERROR_INVALID_VALUE;
  return on.await(on.stream(p.getStream()), on.shared().completionWord(p.getLine()).done, p.getSequence());
}

}  // namespace vgpu::stub
