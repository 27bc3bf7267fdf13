// Access of one device to another's memory: what the devices report of each other, and for which contexts it is enabled.
#include "intercept/driver/shared.h"

namespace vgpu::client {

namespace {

// Runs `body` with the handle of the other context, which is live.
template <typename Body>
CUresult withPeer(CUcontext other, Body&& body) {
  return enter([&](Thread& thread) -> CUresult {
    uint64_t peer = toWire(other);
    if (CUresult bad = thread.resolve(api::Kind::CONTEXT, false, peer)) return bad;
    if (!thread.session.contexts.isLive(peer)) return CUDA_ERROR_INVALID_CONTEXT;
    return body(thread, peer);
  });
}

template <typename Body>
CUresult withDevices(CUdevice device, CUdevice peer, Body&& body) {
  return enterAny([&](Thread& thread) -> CUresult {
    if (!thread.session.hasDevice(device) || !thread.session.hasDevice(peer)) return CUDA_ERROR_INVALID_DEVICE;
    return body(thread.session.devices[static_cast<size_t>(device)], static_cast<unsigned>(peer));
  });
}

}  // namespace

CUresult enablePeerAccess(CUcontext other) {
  return withPeer(other, [](Thread& thread, uint64_t peer) -> CUresult {
    if (peer == thread.owner()) return CUDA_ERROR_INVALID_CONTEXT;
    if (!thread.session.devices[thread.device()].canAccess(handleDevice(peer))) return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
    return thread.session.peerAccess.enable(thread, thread.owner(), peer);
  });
}

CUresult disablePeerAccess(CUcontext other) {
  return withPeer(other, [](Thread& thread, uint64_t peer) {
    return thread.session.peerAccess.disable(thread, thread.owner(), peer);
  });
}

CUresult tellCanAccessPeer(int* can, CUdevice device, CUdevice peer) {
  if (can == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return withDevices(device, peer, [&](const DeviceInfo& info, unsigned other) {
    *can = info.canAccess(other);
    return CUDA_SUCCESS;
  });
}

CUresult tellP2PAttribute(int* value, CUdevice_P2PAttribute attribute, CUdevice device, CUdevice peer) {
  if (value == nullptr || attribute <= 0 || attribute >= DeviceInfo::peerFacts) return CUDA_ERROR_INVALID_VALUE;
  return withDevices(device, peer, [&](const DeviceInfo& info, unsigned other) {
    *value = other < info.peers.size() ? info.peers[other][static_cast<size_t>(attribute)] : 0;
    return CUDA_SUCCESS;
  });
}

}  // namespace vgpu::client
