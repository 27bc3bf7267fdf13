// By hand: the rings themselves, and what comes after a frame of another ring.
#include "cuda-handlers.h"

namespace vgpu::stub {

CUresult openRing(Execution& on, const api::FrameReader<api::Cuda::OpenRingParams>& p, Reply&) {
  if (on.device() != 0 || p.getDevice() >= on.session.deviceCount()) return CUDA_ERROR_INVALID_DEVICE;
  on.session.startThread(p.getDevice());
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
