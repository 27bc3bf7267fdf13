// Peer access: what devices report about each other, and the contexts for which access is enabled.
#include "intercept/driver/shared.h"

namespace vgpu::client {

CUresult setPeerAccess(CUcontext other, bool isEnabled) {
  return enter([&](Thread& thread) -> CUresult {
    uint64_t peer = toWire(other);
    if (peer == 0) return CUDA_ERROR_INVALID_CONTEXT;
    if (CUresult bad = thread.resolve(api::Kind::CONTEXT, false, peer)) return bad;
    if (!thread.session.contexts.isLive(peer)) return CUDA_ERROR_INVALID_CONTEXT;
    PeerAccess& access = thread.session.peerAccess;
    if (!isEnabled) return access.disable(thread, thread.owner(), peer);
    const bool canAccess = peer != thread.owner() && thread.session.devices[thread.device()].canAccess(handleDevice(peer));
    if (!canAccess) return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
    return access.enable(thread, thread.owner(), peer);
  });
}

CUresult tellPeer(int* value, size_t fact, CUdevice device, CUdevice peer) {
  return enterAny([&](Thread& thread) -> CUresult {
    if (value == nullptr || fact >= DeviceInfo::peerFacts) return CUDA_ERROR_INVALID_VALUE;
    if (!thread.session.hasDevice(device) || !thread.session.hasDevice(peer)) return CUDA_ERROR_INVALID_DEVICE;
    auto& peers = thread.session.devices[static_cast<size_t>(device)].peers;
    const auto other = static_cast<size_t>(peer);
    *value = other < peers.size() ? peers[other][fact] : 0;
    return CUDA_SUCCESS;
  });
}

}  // namespace vgpu::client
