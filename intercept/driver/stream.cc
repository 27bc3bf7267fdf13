// Streams: the client keeps what the program has set; the worker's streams execute the work.
#include "intercept/session/entry.h"

using namespace vgpu;
using namespace vgpu::client;

namespace {

// The client's entry of a stream, for a query; nullptr for the built-in ones.
CUresult describedStream(Thread& thread, CUstream stream, ObjectEntry*& entry) {
  uint64_t handle = toWire(stream);
  if (CUresult bad = thread.resolve(api::Kind::STREAM, true, handle)) return bad;
  entry = handle == 0 ? nullptr : thread.session.handles.find(api::Kind::STREAM, handle);
  return CUDA_SUCCESS;
}

// Makes `stream` wait while `function` runs on the session's thread for host functions.
template <typename Function>
CUresult runInStream(CUstream hStream, Function function) {
  return enter([&](Thread& thread) -> CUresult {
    uint64_t stream = toWire(hStream);
    if (CUresult bad = thread.resolve(api::Kind::STREAM, true, stream)) return bad;
    auto completion = thread.session.completionWords.take();
    if (!completion) return CUDA_ERROR_OUT_OF_MEMORY;
    Call<api::Cuda::HostFunctionParams> frame(thread.of(stream), api::Method::hostFunction);
    frame.setStream(stream);
    frame->setLine(*completion);
    thread.session.hostFunctions.add(*completion, frame.device(), frame.sequence(), function);
    return frame.post();
  });
}

}  // namespace

extern "C" {

VGPU_EXPORT CUresult CUDAAPI cuStreamCreateWithPriority(CUstream* phStream, unsigned int flags, int priority) {
  return enter([&](Thread& thread) -> CUresult {
    if (phStream == nullptr || (flags & ~static_cast<unsigned>(CU_STREAM_NON_BLOCKING)) != 0) return CUDA_ERROR_INVALID_VALUE;
    NewHandle made(thread, api::Kind::STREAM);
    ObjectEntry* entry = thread.session.handles.find(api::Kind::STREAM, made.get());
    auto& info = thread.session.devices[thread.device()];
    entry->flags = flags;
    entry->priority = std::clamp(priority, info.greatestPriority, info.leastPriority);
    Call<api::Cuda::StreamCreateParams> frame(thread, api::Method::streamCreate);
    frame->setPhStream(made.get());
    frame->setFlags(flags);
    frame->setPriority(entry->priority);
    if (CUresult error = frame.post()) return error;
    *phStream = fromWire<CUstream>(made.keep());
    return CUDA_SUCCESS;
  });
}

VGPU_EXPORT CUresult CUDAAPI cuStreamCreate(CUstream* phStream, unsigned int flags) {
  return cuStreamCreateWithPriority(phStream, flags, 0);
}

VGPU_EXPORT CUresult CUDAAPI cuStreamDestroy_v2(CUstream hStream) {
  return enter([&](Thread& thread) -> CUresult {
    uint64_t handle = toWire(hStream);
    if (hStream == CU_STREAM_LEGACY || hStream == CU_STREAM_PER_THREAD) return CUDA_ERROR_INVALID_HANDLE;
    if (CUresult bad = thread.resolve(api::Kind::STREAM, false, handle)) return bad;
    return thread.destroyStream(handle);
  });
}

VGPU_EXPORT CUresult CUDAAPI cuStreamSynchronize(CUstream hStream) {
  return enter([&](Thread& thread) -> CUresult {
    uint64_t handle = toWire(hStream);
    if (CUresult bad = thread.resolve(api::Kind::STREAM, true, handle)) return bad;
    return synchronizeStream(thread, handle);
  });
}

VGPU_EXPORT CUresult CUDAAPI cuStreamQuery(CUstream hStream) {
  return enter([&](Thread& thread) -> CUresult {
    uint64_t handle = toWire(hStream);
    if (CUresult bad = thread.resolve(api::Kind::STREAM, true, handle)) return bad;
    unsigned device = thread.deviceOf(handle);
    if (isKnownIdle(thread, handle)) return thread.session.takeError(device);
    Call<api::Cuda::StreamQueryParams> frame(thread.of(handle), api::Method::streamQuery);
    frame->setHStream(handle);
    if (CUresult error = frame.call()) return error;
    return thread.session.takeError(device);
  });
}

VGPU_EXPORT CUresult CUDAAPI cuStreamGetPriority(CUstream hStream, int* priority) {
  return enter([&](Thread& thread) -> CUresult {
    ObjectEntry* entry;
    if (priority == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (CUresult bad = describedStream(thread, hStream, entry)) return bad;
    *priority = entry == nullptr ? 0 : entry->priority;
    return CUDA_SUCCESS;
  });
}

VGPU_EXPORT CUresult CUDAAPI cuStreamGetFlags(CUstream hStream, unsigned int* flags) {
  return enter([&](Thread& thread) -> CUresult {
    ObjectEntry* entry;
    if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (CUresult bad = describedStream(thread, hStream, entry)) return bad;
    *flags = entry == nullptr ? 0u : entry->flags;  // CU_STREAM_DEFAULT
    return CUDA_SUCCESS;
  });
}

VGPU_EXPORT CUresult CUDAAPI cuStreamGetCtx(CUstream hStream, CUcontext* pctx) {
  return enter([&](Thread& thread) -> CUresult {
    uint64_t handle = toWire(hStream);
    if (pctx == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (CUresult bad = thread.resolve(api::Kind::STREAM, true, handle)) return bad;
    ObjectEntry* entry = thread.session.handles.find(api::Kind::STREAM, handle);
    *pctx = fromWire<CUcontext>(entry == nullptr ? thread.context() : entry->context.load());
    return CUDA_SUCCESS;
  });
}

VGPU_EXPORT CUresult CUDAAPI cuStreamGetId(CUstream hStream, unsigned long long* streamId) {
  return enter([&](Thread& thread) -> CUresult {
    uint64_t handle = toWire(hStream);
    if (streamId == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (CUresult bad = thread.resolve(api::Kind::STREAM, true, handle)) return bad;
    *streamId = handle == 0 ? 1 : handle;
    return CUDA_SUCCESS;
  });
}

VGPU_EXPORT CUresult CUDAAPI cuLaunchHostFunc(CUstream hStream, CUhostFn fn, void* userData) {
  if (fn == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return runInStream(hStream, [fn, userData] { fn(userData); });
}

VGPU_EXPORT CUresult CUDAAPI cuStreamAddCallback(CUstream hStream, CUstreamCallback callback, void* userData,
                                                 unsigned int flags) {
  if (callback == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  return runInStream(hStream, [=] { callback(hStream, CUDA_SUCCESS, userData); });
}

}  // extern "C"
