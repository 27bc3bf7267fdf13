#include "intercept/session/stream-depth.h"

#include <thread>

#include "intercept/session/call.h"
#include "vgpu/wire/futex.h"

namespace vgpu::client {

void StreamDepth::countShared(const Thread& thread, uint64_t units) {
  const Thread* nobody = nullptr;
  if (owner.compare_exchange_strong(nobody, &thread))
    owned.fetch_add(units, std::memory_order_release);
  else
    shared.fetch_add(units, std::memory_order_release);
}

// A fence is posted only after the GPU has passed the previous one, so that at most one is pending. The thread that finds it due posts it:
// all frames counted by then precede it in the ring, because a frame is counted after it has been posted.
CUresult StreamDepth::await(Thread& thread, uint64_t stream, uint64_t units) {
  Session& session = thread.session;
  unsigned device = thread.deviceOf(stream);
  for (Backoff backoff;;) {
    uint64_t next = nextFence.load(std::memory_order_relaxed), groupsPassed = passed.load(std::memory_order_acquire);
    if (units >= next && groupsPassed + 1 >= next / groupUnits) {
      if (!nextFence.compare_exchange_strong(next, next + groupUnits)) continue;
      if (CUresult error = postFence(thread, stream)) return error;
    } else if (units < (groupsPassed + 2) * groupUnits) {
      return CUDA_SUCCESS;
    } else if (!passFence(thread, device)) {
      if (session.lost.load(std::memory_order_relaxed)) return session.lossResult();
      if (stream != 0 && session.handles.find<api::Kind::STREAM>(stream) == nullptr) return CUDA_SUCCESS;  // destroyed
      if (!backoff.spin()) std::this_thread::sleep_for(std::chrono::nanoseconds(backoff.sleepNanoseconds()));
    }
  }
}

// Whether the GPU has passed the pending fence, or never will because its context has ended.
bool StreamDepth::passFence(Thread& thread, unsigned device) {
  Session& session = thread.session;
  uint64_t sequence = fence.load(std::memory_order_acquire);
  if (sequence == 0) return false;
  auto own = completion.find();
  bool isPassed = own && session.segment.completionWord(*own).done.load(std::memory_order_acquire) >= sequence;
  if (!isPassed && session.faultOf(device, sequence) == CUDA_SUCCESS) return false;
  if (fence.compare_exchange_strong(sequence, 0)) passed.fetch_add(1, std::memory_order_release);
  return true;
}

CUresult StreamDepth::postFence(Thread& thread, uint64_t stream) {
  auto own = completion.take(thread.session.completionWords, thread.deviceOf(stream));
  if (!own) {  // no word is left: progress is unknown, so the stream is not limited
    passed.fetch_add(1, std::memory_order_release);
    return CUDA_SUCCESS;
  }
  Call<api::Cuda::StreamFenceParams> frame(thread.of(stream), api::Method::streamFence);
  frame->setStream(stream);  // not by frame.setStream(): a fence is not counted as work
  frame->setLine(*own);
  completion.expect(&thread, frame.sequence());
  fence.store(frame.sequence(), std::memory_order_release);
  return frame.post();
}

void StreamDepth::reset() {
  owner.store(nullptr, std::memory_order_relaxed);
  owned.store(0, std::memory_order_relaxed);
  shared.store(0, std::memory_order_relaxed);
  nextFence.store(groupUnits, std::memory_order_relaxed);
  passed.store(0, std::memory_order_relaxed);
  fence.store(0, std::memory_order_relaxed);
  completion.reset();
}

}  // namespace vgpu::client
