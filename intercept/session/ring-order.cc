#include "intercept/session/ring-order.h"

#include "intercept/session/call.h"

namespace vgpu::client {

namespace {

// If the program has seen the other ring's frames executed, what it sends afterwards is ordered behind them anyway. Under thread sanitizer,
// which sees only one process, the frame is sent so that the worker orders its threads itself.
#if defined(__SANITIZE_THREAD__)
constexpr bool isOrderSeen = false;
#else
constexpr bool isOrderSeen = true;
#endif

}  // namespace

CUresult orderBehind(Thread& thread, unsigned waiting, unsigned awaited, uint64_t position) {
  if (waiting == awaited) return CUDA_SUCCESS;  // frames of one ring are in order
  if (isOrderSeen && thread.session.segment.ring(awaited).tail.load(std::memory_order_acquire) >= position) return CUDA_SUCCESS;
  Call<api::Cuda::AwaitRingParams> frame(thread.on(waiting), api::Method::awaitRing);
  frame->setDevice(awaited);
  frame->setPosition(position);
  return frame.post();
}

CUresult awaitFence(Thread& thread, uint64_t stream, const StreamFence& fence) {
  const unsigned device = thread.deviceOf(stream);
  if (CUresult error = orderBehind(thread, device, fence.device, fence.record.sequence)) return error;
  Call<api::Cuda::StreamAwaitRecordParams> frame(thread.on(device), api::Method::streamAwaitRecord);
  frame->setLine(fence.record.completion);
  frame->setSequence(fence.record.sequence);
  frame.setStream(stream);
  return frame.post();
}

uint64_t makeOwnStream(Thread& thread, unsigned device, int priority) {
  const uint64_t stream = thread.session.handles.create(api::Kind::STREAM, device);
  Call<api::Cuda::StreamCreateParams> frame(thread.of(stream), api::Method::streamCreate);
  frame->setPhStream(stream);
  frame->setFlags(CU_STREAM_NON_BLOCKING);
  frame->setPriority(priority);
  frame.post();
  return stream;
}

namespace {

template <typename Order>
CUresult forTouched(Session& session, uint32_t touched, Order order) {
  for (unsigned other = 0; other < session.devices.size(); ++other)
    if ((touched >> other & 1) != 0)
      if (CUresult error = order(other)) return error;
  return CUDA_SUCCESS;
}

uint64_t headOf(Session& session, unsigned device) { return session.segment.ring(device).head.load(std::memory_order_acquire); }

}  // namespace

CUresult orderBehindAll(Thread& thread, unsigned device, uint32_t touched) {
  return forTouched(thread.session, touched,
                    [&](unsigned other) { return orderBehind(thread, device, other, headOf(thread.session, other)); });
}

CUresult orderAllBehind(Thread& thread, uint32_t touched, unsigned device) {
  return forTouched(thread.session, touched,
                    [&](unsigned other) { return orderBehind(thread, other, device, headOf(thread.session, device)); });
}

uint32_t deviceBit(Session& session, uint64_t address) {
  const uint32_t known = (1u << session.devices.size()) - 1;
  if (inDeviceArenas(address)) return (1u << (address - deviceArenaBase) / deviceArenaBytes) & known;
  if (inMappedArena(address)) {
    auto mapped = session.virtualMemory.find(address);
    return mapped && !mapped->isHosts ? 1u << mapped->device : 0;
  }
  if (inHostArena(address)) return 0;
  auto variable = session.variables.at(address);
  return variable ? 1u << handleDevice(variable->module) & known : 0;
}

}  // namespace vgpu::client
