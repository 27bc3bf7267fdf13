// Entries about streams that rows cannot express; the worker's streams execute the work.
#include <algorithm>

#include "intercept/driver/shared.h"

using namespace vgpu;
using namespace vgpu::client;

CUresult vgpu::client::postHostFunction(Thread& thread, uint64_t stream, HostFunctions::Function function, HostFunctions::OnFault onFault) {
  Session& session = thread.session;
  auto run = [&session, f = std::move(function)](CUresult before) { session.managed.runInStream(session, [&] { f(before); }); };
  return HostFunctions::post(thread, session.hostFunctions, stream, run, onFault);
}

CUresult vgpu::client::runInStream(CUstream stream, std::optional<HostWork> node, HostFunctions::Function function) {
  auto describe = [&](Thread&, NodeWork& work) { return work = *node, CUDA_SUCCESS; };
  const auto onFault = node ? HostFunctions::OnFault::dropped : HostFunctions::OnFault::called;
  auto post = [&](Thread& thread, uint64_t handle) { return postHostFunction(thread, handle, function, onFault); };
  return node ? inStream(stream, describe, post) : onStream(stream, post);
}

CUresult vgpu::client::createStream(Thread& thread, uint64_t green, unsigned flags, int priority, uint64_t& stream) {
  if (green != 0) return GreenContexts::createStream(thread, green, flags, priority, stream);
  const DeviceInfo& device = thread.session.devices[thread.device()];
  NewHandle made(thread, api::Kind::STREAM);
  auto& state = *thread.session.handles.find<api::Kind::STREAM>(made.get());
  state.flags = flags;
  state.priority = std::clamp(priority, device.greatestPriority, device.leastPriority);
  Call<api::Cuda::StreamCreateParams> frame(thread, api::Method::streamCreate);
  frame->setPhStream(made.get());
  frame->setFlags(flags);
  frame->setPriority(state.priority);
  if (CUresult error = frame.post()) return error;
  return thread.delayNewStream(stream = made.keep());
}

extern "C" {

VGPU_EXPORT CUresult CUDAAPI cuStreamQuery(CUstream hStream) {
  return askStream(hStream, [&](Thread& thread, uint64_t handle) -> CUresult {
    unsigned device = thread.deviceOf(handle);
    if (isKnownIdle(thread, handle)) return thread.session.takeError(device);
    Call<api::Cuda::StreamQueryParams> frame(thread.of(handle), api::Method::streamQuery);
    frame->setHStream(handle);
    if (CUresult error = frame.call()) return error;
    return thread.session.takeError(device);
  });
}

}  // extern "C"
