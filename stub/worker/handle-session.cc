// By hand: the session's own methods — what the host offers, leases.
#include <kj/common.h>

#include <algorithm>

#include "cuda-handlers.h"

namespace vgpu::stub {

CUresult describe(Execution& on, const api::FrameReader<api::Cuda::DescribeParams>& p, Reply& reply) {
  int device = static_cast<int>(p.getDevice());
  on.session.of(p.getDevice()).gpu.select();
  KJ_DEFER(on.gpu.select());
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
  results.setLeastPriority(least);
  results.setGreatestPriority(greatest);
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
  constexpr size_t most = replyBytes - 8 * sizeof(capnp::word);  // the message around them
  auto kept = on.longReplies.find(on.slotIndex());
  if (kept == on.longReplies.end()) return CUDA_ERROR_INVALID_VALUE;
  auto bytes = kj::arrayPtr(kept->second.data(), kept->second.size()).asBytes();
  if (p.getOffset() >= bytes.size()) return CUDA_ERROR_INVALID_VALUE;
  auto part = bytes.slice(p.getOffset(), std::min<size_t>(p.getOffset() + most, bytes.size()));
  reply.init<api::Cuda::ReplyPartResults>().setBytes(part);
  if (part.end() == bytes.end()) on.longReplies.erase(kept);
  return CUDA_SUCCESS;
}

CUresult lease(Execution& on, const api::FrameReader<api::Cuda::LeaseParams>& p, Reply&) {
  return on.gpu.leases.lease(p.getAddress(), p.getBytes());
}

CUresult endLease(Execution& on, const api::FrameReader<api::Cuda::EndLeaseParams>& p, Reply&) {
  return on.gpu.leases.endLease(p.getAddress());
}

CUresult hostLease(Execution& on, const api::FrameReader<api::Cuda::HostLeaseParams>& p, Reply&) {
  return on.session.hostLeases.lease(p.getAddress(), p.getBytes(), on.session.hostArenaFile());
}

CUresult endHostLease(Execution& on, const api::FrameReader<api::Cuda::EndHostLeaseParams>& p, Reply&) {
  return on.session.hostLeases.endLease(p.getAddress(), on.session.hostArenaFile());
}

CUresult hostAdopt(Execution& on, const api::FrameReader<api::Cuda::HostAdoptParams>& p, Reply&) {
  return on.session.hostLeases.adopt(p.getAddress(), p.getArenaAddress(), p.getBytes(), on.session.hostArenaFile());
}

CUresult hostRelease(Execution& on, const api::FrameReader<api::Cuda::HostReleaseParams>& p, Reply&) {
  return on.session.hostLeases.release(p.getAddress(), on.session.hostArenaFile());
}

CUresult memGetInfo(Execution& on, const api::FrameReader<api::Cuda::MemGetInfoParams>&, Reply& reply) {
  size_t free = 0, total = 0;
  if (CUresult error = on.driver.cuMemGetInfo_v2(&free, &total)) return error;
  auto results = reply.init<api::Cuda::MemGetInfoResults>();
  results.setFree(free);
  results.setTotal(total);
  return CUDA_SUCCESS;
}

}  // namespace vgpu::stub
