// By hand: frames that open a ring, or that wait for another ring.
#include "cuda-handlers.h"

namespace vgpu::stub {

// The driver takes tenths of a second to create a context; the first ring goes on meanwhile. After a fault no context can be created on any
// device, but the ring is consumed all the same, because the program discards its objects there.
CUresult openRing(Execution& on, const api::FrameReader<api::Cuda::OpenRingParams>& p, Reply& reply) {
  const unsigned device = p.getDevice();
  if (on.device() != 0 || device >= on.session.deviceCount()) return CUDA_ERROR_INVALID_DEVICE;
  auto begin = [&on, device] {
    if (on.gpu.progress.fault() != CUDA_SUCCESS) return CUDA_SUCCESS;
    std::lock_guard noOtherLoads(on.session.moduleLoading);  // creating a context takes addresses from the driver too
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

// Executed only when its condition holds: RingConsumer waits for that.
CUresult awaitRing(Execution& on, const api::FrameReader<api::Cuda::AwaitRingParams>& p, Reply&) {
  bool isOther = p.getDevice() < on.session.deviceCount() && p.getDevice() != on.device();
  return isOther ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

// An earlier frame has waited for the record's ring, so the record has been issued: this stream waits for work of the other GPU that no
// thread of the worker can delay. The GPU reads the completion word; the other GPU writes it after a system-wide fence.
CUresult streamAwaitRecord(Execution& on, const api::FrameReader<api::Cuda::StreamAwaitRecordParams>& p, Reply&) {
  if (p.getLine() >= completionWordCount) return CUDA_ERROR_INVALID_VALUE;
  return on.await(on.stream(p.getStream()), on.shared().completionWord(p.getLine()).done, p.getSequence());
}

}  // namespace vgpu::stub
