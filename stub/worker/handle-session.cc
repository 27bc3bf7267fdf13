// By hand: the session's own methods: what the host offers, and leases.
#include <algorithm>

#include "cuda-handlers.h"
#include "stub/worker/lease-placements.h"

namespace vgpu::stub {

namespace {

// For each device: whether this one can access its memory, and every CUdevice_P2PAttribute from 1 on; 0 for the device itself, and for
// attributes that this driver does not know.
template <typename Results>
void describePeers(Execution& on, CUdevice device, Results& results) {
  constexpr unsigned each = CU_DEVICE_P2P_ATTRIBUTE_ONLY_PARTIAL_NATIVE_ATOMIC_SUPPORTED + 1;
  auto peers = results.initPeers(each * on.session.deviceCount());
  for (unsigned number = 0; number < on.session.deviceCount(); ++number) {
    CUdevice peer = on.driver.device(number);
    for (unsigned fact = 0; fact < each; ++fact) {
      int value = 0;
      if (peer != device) {
        CUresult known = fact == 0 ? on.driver.cuDeviceCanAccessPeer(&value, device, peer)
                                   : on.driver.cuDeviceGetP2PAttribute(&value, static_cast<CUdevice_P2PAttribute>(fact), device, peer);
        if (known != CUDA_SUCCESS) value = 0;
      }
      peers.set(number * each + fact, value);
    }
  }
}

}  // namespace

CUresult describe(Execution& on, const api::FrameReader<api::Cuda::DescribeParams>& p, Reply& reply) {
  on.session.of(p.getDevice());  // throws if there is no such device
  CUdevice device = on.driver.device(p.getDevice());
  int version = 0, least = 0, greatest = 0;
  char text[256] = "";
  CUuuid uuid{};
  size_t total = 0;
  auto results = reply.init<api::Cuda::DescribeResults>();
  if (CUresult error = on.driver.cuDriverGetVersion(&version)) return error;
  results.setCount(on.session.deviceCount());
  results.setDriverVersion(version);
  if (CUresult error = on.driver.cuDeviceGetName(text, sizeof text, device)) return error;
  results.setName(text);
  if (CUresult error = on.driver.cuDeviceGetPCIBusId(text, sizeof text, device)) return error;
  results.setPciBusId(text);
  if (CUresult error = on.driver.cuDeviceGetUuid_v2(&uuid, device)) return error;
  results.setUuid(uuid);
  if (CUresult error = on.driver.cuDeviceTotalMem_v2(&total, device)) return error;
  results.setTotalBytes(total);
  if (CUresult error = on.driver.cuCtxGetStreamPriorityRange(&least, &greatest)) return error;
  // Of the current context: the range is the same for all GPUs of a host.
  results.setLeastPriority(least);
  results.setGreatestPriority(greatest);
  describePeers(on, device, results);
  auto attributes = results.initAttributes(CU_DEVICE_ATTRIBUTE_MAX);
  for (unsigned i = 0; i < CU_DEVICE_ATTRIBUTE_MAX; ++i) {
    int value = 0;
    if (on.driver.cuDeviceGetAttribute(&value, static_cast<CUdevice_attribute>(i), device) == CUDA_SUCCESS)
      attributes.set(i, value);
  }
  return CUDA_SUCCESS;
}

CUresult nothing(Execution&, const api::FrameReader<api::Cuda::NothingParams>&, Reply&) { return CUDA_SUCCESS; }

CUresult replyPart(Execution& on, const api::FrameReader<api::Cuda::ReplyPartParams>& p, Reply& reply) {
  constexpr size_t most = replyBytes - 8 * sizeof(capnp::word);  // without the message's overhead
  auto kept = on.longReplies.find(on.slotIndex());
  if (kept == on.longReplies.end()) return CUDA_ERROR_INVALID_VALUE;
  auto bytes = kj::arrayPtr(kept->second.data(), kept->second.size()).asBytes();
  if (p.getOffset() >= bytes.size()) return CUDA_ERROR_INVALID_VALUE;
  auto part = bytes.slice(p.getOffset(), std::min<size_t>(p.getOffset() + most, bytes.size()));
  reply.init<api::Cuda::ReplyPartResults>().setBytes(part);
  if (part.end() == bytes.end()) on.longReplies.erase(kept);
  return CUDA_SUCCESS;
}

// Managed memory is leased only if all devices can access it: the program uses pinned memory otherwise.
CUresult lease(Execution& on, const api::FrameReader<api::Cuda::LeaseParams>& p, Reply&) {
  if (inManagedPart(p.getAddress()) && on.session.findUnreaching(on.device())) return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
  return on.gpu.leases.lease(p.getAddress(), p.getBytes());
}

CUresult endLease(Execution& on, const api::FrameReader<api::Cuda::EndLeaseParams>& p, Reply&) {
  return on.gpu.leases.endLease(p.getAddress());
}

CUresult leasePlace(Execution& on, const api::FrameReader<api::Cuda::LeasePlaceParams>& p, Reply& reply) {
  CUresult result = place(on, p.getAddress(), placementsIn(p, on.session.deviceCount()), p.getMayWait());
  reply.init<api::Cuda::LeasePlaceResults>().setIsBusy(result == CUDA_ERROR_NOT_READY);
  return result == CUDA_ERROR_NOT_READY ? CUDA_SUCCESS : result;
}

// Also serves hostPiece, a method that workers without support for pieces refuse.
CUresult hostLease(Execution& on, const api::FrameReader<api::Cuda::HostLeaseParams>& p, Reply&) {
  return on.session.leaseHost(p.getAddress(), p.getBytes(), p.getPlace());
}

CUresult endHostLease(Execution& on, const api::FrameReader<api::Cuda::EndHostLeaseParams>& p, Reply&) {
  return on.session.endHostLease(on, p.getAddress(), p.getIfIdle());
}

// The driver pins all pages at once, at 50 ms or more for each GiB.
CUresult hostAdopt(Execution& on, const api::FrameReader<api::Cuda::HostAdoptParams>& p, Reply& reply) {
  reply.putOff(on.session.adoptingHost(p.getAddress(), p.getBytes(), SessionState::HostSource::in(p, p.getOffset(), p.getIsReadOnly())));
  return CUDA_SUCCESS;
}

CUresult hostRelease(Execution& on, const api::FrameReader<api::Cuda::HostReleaseParams>& p, Reply&) {
  return on.session.hostLeases.release(p.getAddress(), on.session.hostArenaFile());
}

CUresult memGetInfo(Execution& on, const api::FrameReader<api::Cuda::MemGetInfoParams>&, Reply& reply) {
  size_t free = 0, total = 0;
  if (CUresult error = on.driver.cuMemGetInfo_v2(&free, &total)) return error;
  if (on.device() < on.session.seen.size()) total = on.session.seen[on.device()].memoryBytes;  // the total that the device's properties
                                                                                               // report
  auto results = reply.init<api::Cuda::MemGetInfoResults>();
  results.setFree(std::min(free, total));
  results.setTotal(total);
  return CUDA_SUCCESS;
}

}  // namespace vgpu::stub
