#include "intercept/session/stream-priority.h"

#include <algorithm>
#include <atomic>

#include "intercept/session/thread.h"

namespace vgpu::client {

namespace {

std::atomic<int32_t>& priorityOf(Thread& thread, uint64_t stream) {
  auto* state = thread.session.handles.find<api::Kind::STREAM>(stream);
  return state != nullptr ? state->priority : thread.session.legacyPriorities[thread.device()];
}

}  // namespace

CUresult keepPriority(Thread& thread, uint64_t stream, CUstreamAttrID attribute, const CUstreamAttrValue* value) {
  if (attribute != CU_LAUNCH_ATTRIBUTE_PRIORITY || value == nullptr) return CUDA_SUCCESS;  // which the call refuses
  const DeviceInfo& device = thread.session.devices[thread.deviceOf(stream)];
  priorityOf(thread, stream).store(std::clamp(value->priority, device.greatestPriority, device.leastPriority), std::memory_order_relaxed);
  return CUDA_SUCCESS;
}

CUresult keepPriority(Thread& thread, uint64_t stream, uint64_t from) {
  if (CUresult refused = thread.refuseCaptured(from)) return refused;
  priorityOf(thread, stream).store(priorityOf(thread, from).load(std::memory_order_relaxed), std::memory_order_relaxed);
  return CUDA_SUCCESS;
}

}  // namespace vgpu::client
