// What rows cannot say of streams; the worker's streams execute the work.
#include <algorithm>

#include "intercept/driver/shared.h"

using namespace vgpu;
using namespace vgpu::client;

CUresult vgpu::client::postHostFunction(Thread& thread, uint64_t stream, std::function<void()> function) {
  auto completion = thread.session.completionWords.take(thread.deviceOf(stream));
  if (!completion) return CUDA_ERROR_OUT_OF_MEMORY;
  Call<api::Cuda::HostFunctionParams> frame(thread.of(stream), api::Method::hostFunction);
  frame.setStream(stream);
  frame->setLine(*completion);
  Session& session = thread.session;
  session.hostFunctions.add(*completion, frame.device(), frame.sequence(), [&session, function = std::move(function)] {
    session.managed.runInStream(session, function);
  });
  return frame.post();
}

CUresult vgpu::client::launchHost(CUstream stream, CUhostFn function, void* data) {
  auto describe = [&](Thread&, NodeWork& work) { return work = HostWork{{function, data}}, CUDA_SUCCESS; };
  return inStream(stream, describe, [&](Thread& thread, uint64_t handle) {
    return postHostFunction(thread, handle, [function, data] { function(data); });
  });
}

extern "C" {

VGPU_EXPORT CUresult CUDAAPI cuStreamCreateWithPriority(CUstream* phStream, unsigned int flags, int priority) {
  return enter([&](Thread& thread) -> CUresult {
    if (phStream == nullptr || (flags & ~unsigned{CU_STREAM_NON_BLOCKING}) != 0) return CUDA_ERROR_INVALID_VALUE;
    if (uint64_t green = thread.greenContext()) return GreenContexts::createStream(thread, green, flags, priority, phStream);
    const DeviceInfo& device = thread.session.devices[thread.device()];
    priority = std::clamp(priority, device.greatestPriority, device.leastPriority);
    NewHandle made(thread, api::Kind::STREAM);
    auto& state = *thread.session.handles.find<api::Kind::STREAM>(made.get());
    state.flags = flags;
    state.priority = priority;
    Call<api::Cuda::StreamCreateParams> frame(thread, api::Method::streamCreate);
    frame->setPhStream(made.get());
    frame->setFlags(flags);
    frame->setPriority(priority);
    if (CUresult error = frame.post()) return error;
    *phStream = fromWire<CUstream>(made.keep());
    return thread.delayNewStream(toWire(*phStream));
  });
}

VGPU_EXPORT CUresult CUDAAPI cuStreamDestroy_v2(CUstream hStream) {
  return enter([&](Thread& thread) -> CUresult {
    uint64_t handle = toWire(hStream);
    if (hStream == CU_STREAM_LEGACY || hStream == CU_STREAM_PER_THREAD) return CUDA_ERROR_INVALID_HANDLE;
    if (CUresult bad = thread.resolve(api::Kind::STREAM, false, handle)) return bad;
    return thread.destroyStream(handle);
  });
}

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
