// Access of one GPU to another's memory.
//
// Leased memory is accessible to every GPU of the session that reaches it, whatever the program has enabled: the driver copies it
// between GPUs in no other way (device-leases.h). What lies elsewhere, as arrays, is accessible to another GPU once the contexts say
// so; variables of modules never are (docs/facts.md).
#include "cuda-handlers.h"
#include "stub/worker/kinds/kind.h"

namespace vgpu::stub {

CUresult peerAccess(Execution& on, const api::FrameReader<api::Cuda::PeerAccessParams>& p, Reply&) {
  if (p.getPeer() >= on.session.deviceCount() || p.getPeer() == on.device()) return CUDA_ERROR_INVALID_DEVICE;
  const uint32_t bit = 1u << p.getPeer();
  if (((on.peers & bit) != 0) == p.getEnabled()) return CUDA_SUCCESS;
  if (CUresult refused = on.session.use(p.getPeer())) return refused;
  CUcontext peer = on.session.of(p.getPeer()).gpu.context.get();
  if (peer == on.gpu.context.get()) {  // one GPU in the place of both
    on.peers ^= bit;
    return CUDA_SUCCESS;
  }
  CUresult result = p.getEnabled() ? on.driver.cuCtxEnablePeerAccess(peer, 0) : on.driver.cuCtxDisablePeerAccess(peer);
  if (result == CUDA_SUCCESS) on.peers ^= bit;
  return result;
}

namespace {

CUresult destroy(Execution& on) {
  for (unsigned device = 0; on.peers != 0; ++device) {
    if ((on.peers >> device & 1) == 0) continue;
    on.peers &= ~(1u << device);
    if (on.session.of(device).gpu.context.get() == on.gpu.context.get()) continue;
    if (CUresult error = on.driver.cuCtxDisablePeerAccess(on.session.of(device).gpu.context.get())) return error;
  }
  return CUDA_SUCCESS;
}

}  // namespace

const KindModule peersKind{.name = "peers", .drop = [](Execution& on) { on.peers = 0; }, .destroy = destroy};

}  // namespace vgpu::stub
