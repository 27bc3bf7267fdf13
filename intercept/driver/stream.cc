// What rows cannot say of streams; the worker's streams execute the work.
#include "intercept/session/entry.h"

using namespace vgpu;
using namespace vgpu::client;

extern "C" {

VGPU_EXPORT CUresult CUDAAPI cuStreamDestroy_v2(CUstream hStream) {
  return enter([&](Thread& thread) -> CUresult {
    uint64_t handle = toWire(hStream);
    if (hStream == CU_STREAM_LEGACY || hStream == CU_STREAM_PER_THREAD) return CUDA_ERROR_INVALID_HANDLE;
    if (CUresult bad = thread.resolve(api::Kind::STREAM, false, handle)) return bad;
    return thread.destroyStream(handle);
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

}  // extern "C"
