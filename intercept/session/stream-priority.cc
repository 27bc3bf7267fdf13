#include "intercept/session/stream-priority.h"

#include <algorithm>
#include <atomic>

#include "intercept/session/call.h"
#include "intercept/session/ring-order.h"
#include "intercept/session/thread.h"

namespace vgpu::client {

namespace {

std::atomic<int32_t>& priorityOf(Thread& thread, uint64_t stream) {
  auto* state = thread.session.handles.find<api::Kind::STREAM>(stream);
  return state != nullptr ? state->priority : thread.session.legacyPriorities[thread.device()];
}

void noteSet(Thread& thread, uint64_t stream) {
  if (stream == 0) thread.session.defaultStreamsSetOf[thread.device()].store(thread.owner(), std::memory_order_relaxed);
}

}  // namespace

CUresult keepPriority(Thread& thread, uint64_t stream, CUstreamAttrID attribute, const CUstreamAttrValue* value) {
  noteSet(thread, stream);
  if (attribute != CU_LAUNCH_ATTRIBUTE_PRIORITY || value == nullptr) return CUDA_SUCCESS;  // the call refuses these itself
  const DeviceInfo& device = thread.session.devices[thread.deviceOf(stream)];
  priorityOf(thread, stream).store(std::clamp(value->priority, device.greatestPriority, device.leastPriority), std::memory_order_relaxed);
  return CUDA_SUCCESS;
}

CUresult keepPriority(Thread& thread, uint64_t stream, uint64_t from) {
  if (CUresult refused = thread.refuseCaptured(from)) return refused;
  noteSet(thread, stream);
  priorityOf(thread, stream).store(priorityOf(thread, from).load(std::memory_order_relaxed), std::memory_order_relaxed);
  return CUDA_SUCCESS;
}

// Relaxed: the program orders its settings of a context before the end of the context.
void endDefaultStream(Thread& thread, unsigned device, uint64_t context) {
  auto& setOf = thread.session.defaultStreamsSetOf[device];
  const uint64_t last = setOf.load(std::memory_order_relaxed);
  if (last == 0 || (context != 0 && context != last)) return;
  setOf.store(0, std::memory_order_relaxed);
  thread.session.legacyPriorities[device].store(0, std::memory_order_relaxed);
  if (context == 0) return;
  const uint64_t made = makeOwnStream(thread, device, 0);
  {
    Call<api::Cuda::StreamCopyAttributesParams> frame(thread.on(device), api::Method::streamCopyAttributes);
    frame->setSrcStream(made);
    frame.call();
  }
  thread.session.deviceReplies[device].forget();
  thread.destroyStream(made);
}

}  // namespace vgpu::client
