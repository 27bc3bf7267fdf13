// Access of one GPU to another's memory.
//
// Leased memory is accessible to every GPU of the session that can reach it, whatever the program has enabled: the driver needs that to
// copy between GPUs (device-leases.h). Other memory, such as arrays, is accessible to another GPU once access is enabled between the
// contexts; variables of modules never are (docs/facts.md).
#include <bitset>

#include "cuda-handlers.h"
#include "stub/worker/kinds/kind.h"

namespace vgpu::stub {

namespace {

// A bit for each device whose memory the GPU's context can access.
struct Peers : std::bitset<maxDevices> {};

}  // namespace

CUresult peerAccess(Execution& on, const api::FrameReader<api::Cuda::PeerAccessParams>& p, Reply&) {
  if (p.getPeer() >= on.session.deviceCount() || p.getPeer() == on.device()) return CUDA_ERROR_INVALID_DEVICE;
  auto isEnabled = on.kept.of<Peers>()[p.getPeer()];
  if (isEnabled == p.getEnabled()) return CUDA_SUCCESS;
  if (CUresult refused = on.session.use(p.getPeer())) return refused;
  CUcontext peer = on.session.of(p.getPeer()).gpu.context.get();
  CUresult result = CUDA_SUCCESS;
  if (peer != on.gpu.context.get())  // otherwise both devices are one GPU here
    result = p.getEnabled() ? on.driver.cuCtxEnablePeerAccess(peer, 0) : on.driver.cuCtxDisablePeerAccess(peer);
  if (result == CUDA_SUCCESS) isEnabled.flip();
  return result;
}

namespace {

CUresult destroy(Execution& on) {
  auto& peers = on.kept.of<Peers>();
  for (unsigned device = 0; peers.any(); ++device) {
    if (!peers[device]) continue;
    peers.reset(device);
    if (on.session.of(device).gpu.context.get() == on.gpu.context.get()) continue;
    if (CUresult error = on.driver.cuCtxDisablePeerAccess(on.session.of(device).gpu.context.get())) return error;
  }
  return CUDA_SUCCESS;
}

}  // namespace

const KindModule peersKind{.name = "peers", .drop = [](Execution& on) { on.kept.of<Peers>() = {}; }, .destroy = destroy};

}  // namespace vgpu::stub
