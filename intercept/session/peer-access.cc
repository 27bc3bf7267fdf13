#include "intercept/session/peer-access.h"

#include <algorithm>
#include <vector>

#include "intercept/session/call.h"

namespace vgpu::client {

namespace {

CUresult tellWorker(Thread& thread, unsigned device, unsigned peer, bool enabled) {
  thread.session.use(thread, peer);
  Call<api::Cuda::PeerAccessParams> frame(thread.on(device), api::Method::peerAccess);
  frame->setPeer(peer);
  frame->setEnabled(enabled);
  return frame.call();
}

}  // namespace

bool PeerAccess::haveAccess(unsigned device, unsigned peer) const {
  return std::ranges::any_of(enabled, [&](const Pair& pair) {
    return handleDevice(pair.first) == device && handleDevice(pair.second) == peer;
  });
}

CUresult PeerAccess::enable(Thread& thread, uint64_t context, uint64_t peer) {
  const unsigned from = handleDevice(context), to = handleDevice(peer);
  std::lock_guard lock(mutex);
  if (enabled.contains({context, peer})) return CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
  if (!haveAccess(from, to))
    if (CUresult error = tellWorker(thread, from, to, true)) return error;
  enabled.insert({context, peer});
  return CUDA_SUCCESS;
}

CUresult PeerAccess::disable(Thread& thread, uint64_t context, uint64_t peer) {
  const unsigned from = handleDevice(context), to = handleDevice(peer);
  std::lock_guard lock(mutex);
  if (enabled.erase({context, peer}) == 0) return CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
  return haveAccess(from, to) ? CUDA_SUCCESS : tellWorker(thread, from, to, false);
}

void PeerAccess::forget(Thread& thread, unsigned device, uint64_t context) {
  auto isOver = [&](uint64_t each) { return context != 0 ? each == context : handleDevice(each) == device; };
  std::lock_guard lock(mutex);
  std::vector<Pair> ended;
  std::ranges::copy_if(enabled, std::back_inserter(ended), [&](const Pair& pair) { return isOver(pair.first) || isOver(pair.second); });
  for (auto& pair : ended) {
    enabled.erase(pair);
    const unsigned from = handleDevice(pair.first), to = handleDevice(pair.second);
    if (!haveAccess(from, to)) tellWorker(thread, from, to, false);  // a device that has faulted has lost its access already
  }
}

}  // namespace vgpu::client
