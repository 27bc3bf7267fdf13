#include "intercept/session/ring-order.h"

#include "intercept/session/call.h"

namespace vgpu::client {

CUresult orderBehind(Thread& thread, unsigned waiting, unsigned awaited, uint64_t position) {
  if (thread.session.segment.ring(awaited).tail.load(std::memory_order_acquire) >= position) return CUDA_SUCCESS;
  Call<api::Cuda::AwaitRingParams> frame(thread.on(waiting), api::Method::awaitRing);
  frame->setDevice(awaited);
  frame->setPosition(position);
  return frame.post();
}

namespace {

uint32_t deviceBit(Session& session, uint64_t address) {
  if (inDeviceArenas(address)) return 1u << (address - deviceArenaBase) / deviceArenaBytes;
  if (inHostArena(address)) return 0;
  auto variable = session.variables.at(address);
  return variable ? 1u << handleDevice(variable->module) : 0;
}

}  // namespace

uint32_t devicesOf(Session& session, uint64_t destination, uint64_t source) {
  if (session.devices.size() == 1) return 0;
  uint32_t known = (1u << session.devices.size()) - 1;
  return (deviceBit(session, destination) | deviceBit(session, source)) & known;
}

}  // namespace vgpu::client
