// Contexts: a session has one real context for each device, made by the worker before the program starts. The program's contexts are
// handles for it that own the objects made in them (session/contexts.h); which one is current is per-thread state.
#include "intercept/driver/shared.h"

using namespace vgpu;
using namespace vgpu::client;

namespace {

CUresult createContext(CUcontext* context, unsigned flags, CUdevice device) {
  return enterAny([&](Thread& thread) -> CUresult {
    if (context == nullptr || !Contexts::areFlags(flags)) return CUDA_ERROR_INVALID_VALUE;
    if (!thread.session.hasDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
    if (CUresult fault = thread.session.fault(static_cast<unsigned>(device))) return fault;
    uint64_t handle = thread.session.handles.create(api::Kind::CONTEXT, static_cast<unsigned>(device));
    thread.session.handles.find<api::Kind::CONTEXT>(handle)->flags = Contexts::madeWith(flags);
    thread.makeCurrent(handle);
    *context = fromWire<CUcontext>(handle);
    return thread.session.contexts.attach(handle);
  });
}

}  // namespace

CUresult vgpu::client::endUses(CUcontext context, Uses which) {
  return enterAny([&](Thread& thread) -> CUresult {
    uint64_t handle = toWire(context);
    const bool isCurrent = handle != 0 && thread.context() == handle;
    if (which == Uses::one) {
      if (!isCurrent) return CUDA_ERROR_INVALID_CONTEXT;
      if (!thread.session.contexts.detach(handle)) return CUDA_SUCCESS;
    }
    if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (CUresult bad = thread.resolve(api::Kind::CONTEXT, false, handle)) return bad;
    // A green context's context ends with the green context only.
    if (thread.session.contexts.ownerOf(handle) == thread.session.primaryContext(handleDevice(handle))) return CUDA_ERROR_INVALID_CONTEXT;
    // Destroying a context waits for its work only if the program can observe that: if its kernels print.
    if (thread.session.output.isExpected()) synchronizeDevice(thread, handleDevice(handle));
    if (isCurrent) thread.leaveCurrent();
    return endContext(thread, handle);
  });
}

extern "C" {

VGPU_EXPORT CUresult CUDAAPI cuCtxCreate_v4(CUcontext* pctx, CUctxCreateParams* parameters, unsigned int flags,
                                            CUdevice dev) {
  if (parameters != nullptr && (parameters->numExecAffinityParams != 0 || parameters->cigParams != nullptr))
    return CUDA_ERROR_NOT_SUPPORTED;
  return createContext(pctx, flags, dev);
}

VGPU_EXPORT CUresult CUDAAPI cuCtxSetCurrent(CUcontext ctx) {
  return enterAny([&](Thread& thread) -> CUresult {
    uint64_t handle = toWire(ctx);
    // A context that ended with its green context can become current; calls that need a context then return that error.
    CUresult bad = thread.resolve(api::Kind::CONTEXT, true, handle);
    if (bad != CUDA_SUCCESS && bad != CUDA_ERROR_CONTEXT_IS_DESTROYED) return bad;
    if (!thread.contextStack.empty()) thread.leaveCurrent();
    if (handle != 0) thread.makeCurrent(handle);
    return CUDA_SUCCESS;
  });
}

}  // extern "C"
