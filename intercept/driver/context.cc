// Contexts: a session has one a device, made by the worker before the program came. What the program creates are names
// for it; which one is current is state of the thread.
#include <array>
#include <atomic>

#include "intercept/driver/context-reset.h"
#include "intercept/session/entry.h"

using namespace vgpu;

namespace {

// How often the program holds each device's primary context.
std::array<std::atomic<int>, maxDevices> retains{};
std::array<std::atomic<unsigned>, maxDevices> primaryFlags{};

bool exists(const Thread& thread, CUdevice device) {
  return device >= 0 && static_cast<size_t>(device) < thread.session.devices.size();
}

CUresult createContext(CUcontext* context, unsigned flags, CUdevice device) {
  return enterAny([&](Thread& thread) -> CUresult {
    if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (!exists(thread, device)) return CUDA_ERROR_INVALID_DEVICE;
    uint64_t handle = thread.session.handles.create(api::Kind::CONTEXT, static_cast<unsigned>(device));
    thread.session.handles.find(api::Kind::CONTEXT, handle)->flags = flags;
    thread.contextStack.push_back(handle);
    *context = fromWire<CUcontext>(handle);
    return CUDA_SUCCESS;
  });
}

}  // namespace

extern "C" {

VGPU_EXPORT CUresult CUDAAPI cuDevicePrimaryCtxRetain(CUcontext* pctx, CUdevice dev) {
  return enterAny([&](Thread& thread) -> CUresult {
    if (pctx == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (!exists(thread, dev)) return CUDA_ERROR_INVALID_DEVICE;
    retains[static_cast<size_t>(dev)].fetch_add(1);
    *pctx = fromWire<CUcontext>(thread.session.primaryContext(static_cast<unsigned>(dev)));
    return CUDA_SUCCESS;
  });
}

VGPU_EXPORT CUresult CUDAAPI cuDevicePrimaryCtxRelease_v2(CUdevice dev) {
  return enterAny([&](Thread& thread) -> CUresult {
    if (!exists(thread, dev)) return CUDA_ERROR_INVALID_DEVICE;
    auto& held = retains[static_cast<size_t>(dev)];
    if (held.load() <= 0) return CUDA_ERROR_INVALID_CONTEXT;
    if (held.fetch_sub(1) != 1) return CUDA_SUCCESS;
    return resetContext(thread, static_cast<unsigned>(dev));
  });
}

VGPU_EXPORT CUresult CUDAAPI cuDevicePrimaryCtxReset_v2(CUdevice dev) {
  return enterAny([&](Thread& thread) -> CUresult {
    if (!exists(thread, dev)) return CUDA_ERROR_INVALID_DEVICE;
    return resetContext(thread, static_cast<unsigned>(dev));
  });
}

VGPU_EXPORT CUresult CUDAAPI cuDevicePrimaryCtxGetState(CUdevice dev, unsigned int* flags, int* active) {
  return enterAny([&](Thread& thread) -> CUresult {
    if (flags == nullptr || active == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (!exists(thread, dev)) return CUDA_ERROR_INVALID_DEVICE;
    *flags = primaryFlags[static_cast<size_t>(dev)].load();
    *active = retains[static_cast<size_t>(dev)].load() > 0;
    return CUDA_SUCCESS;
  });
}

VGPU_EXPORT CUresult CUDAAPI cuDevicePrimaryCtxSetFlags_v2(CUdevice dev, unsigned int flags) {
  return enterAny([&](Thread& thread) -> CUresult {
    if (!exists(thread, dev)) return CUDA_ERROR_INVALID_DEVICE;
    if ((flags & ~static_cast<unsigned>(CU_CTX_FLAGS_MASK)) != 0) return CUDA_ERROR_INVALID_VALUE;
    primaryFlags[static_cast<size_t>(dev)].store(flags);
    return CUDA_SUCCESS;
  });
}

#undef cuCtxCreate
VGPU_EXPORT CUresult CUDAAPI cuCtxCreate_v2(CUcontext* pctx, unsigned int flags, CUdevice dev) {
  return createContext(pctx, flags, dev);
}

VGPU_EXPORT CUresult CUDAAPI cuCtxCreate_v4(CUcontext* pctx, CUctxCreateParams* parameters, unsigned int flags,
                                            CUdevice dev) {
  if (parameters != nullptr && (parameters->numExecAffinityParams != 0 || parameters->cigParams != nullptr))
    return CUDA_ERROR_NOT_SUPPORTED;
  return createContext(pctx, flags, dev);
}

VGPU_EXPORT CUresult CUDAAPI cuCtxDestroy_v2(CUcontext ctx) {
  return enterAny([&](Thread& thread) -> CUresult {
    uint64_t handle = toWire(ctx);
    if (CUresult bad = thread.resolve(api::Kind::CONTEXT, false, handle)) return bad;
    if (handle == thread.session.primaryContext(handleDevice(handle))) return CUDA_ERROR_INVALID_CONTEXT;
    // Its end waits for its work, where somebody could see that: in what kernels print.
    if (thread.session.output.isExpected()) synchronizeDevice(thread, handleDevice(handle));
    if (!thread.contextStack.empty() && thread.contextStack.back() == handle) thread.contextStack.pop_back();
    thread.session.handles.destroy(handle);
    // All contexts of a device are one in the worker: ending any of them is how a program gets over a fault.
    unsigned device = handleDevice(handle);
    return thread.session.fault(device) == CUDA_SUCCESS ? CUDA_SUCCESS : resetContext(thread, device);
  });
}

VGPU_EXPORT CUresult CUDAAPI cuCtxSetCurrent(CUcontext ctx) {
  return enterAny([&](Thread& thread) -> CUresult {
    uint64_t handle = toWire(ctx);
    if (CUresult bad = thread.resolve(api::Kind::CONTEXT, true, handle)) return bad;
    if (!thread.contextStack.empty()) thread.contextStack.pop_back();
    if (handle != 0) thread.contextStack.push_back(handle);
    return CUDA_SUCCESS;
  });
}

VGPU_EXPORT CUresult CUDAAPI cuCtxGetCurrent(CUcontext* pctx) {
  return enterAny([&](Thread& thread) -> CUresult {
    if (pctx == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *pctx = fromWire<CUcontext>(thread.contextStack.empty() ? 0 : thread.contextStack.back());
    return CUDA_SUCCESS;
  });
}

VGPU_EXPORT CUresult CUDAAPI cuCtxPushCurrent_v2(CUcontext ctx) {
  return enterAny([&](Thread& thread) -> CUresult {
    uint64_t handle = toWire(ctx);
    if (CUresult bad = thread.resolve(api::Kind::CONTEXT, false, handle)) return bad;
    thread.contextStack.push_back(handle);
    return CUDA_SUCCESS;
  });
}

VGPU_EXPORT CUresult CUDAAPI cuCtxPopCurrent_v2(CUcontext* pctx) {
  return enterContext([&](Thread& thread) -> CUresult {
    if (pctx != nullptr) *pctx = fromWire<CUcontext>(thread.contextStack.back());
    thread.contextStack.pop_back();
    return CUDA_SUCCESS;
  });
}

VGPU_EXPORT CUresult CUDAAPI cuCtxGetDevice(CUdevice* device) {
  return enterContext([&](Thread& thread) -> CUresult {
    if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *device = static_cast<CUdevice>(thread.device());
    return CUDA_SUCCESS;
  });
}

VGPU_EXPORT CUresult CUDAAPI cuCtxGetApiVersion(CUcontext ctx, unsigned int* version) {
  return enterAny([&](Thread& thread) -> CUresult {
    uint64_t handle = toWire(ctx);
    if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (handle == 0 && thread.contextStack.empty()) return CUDA_ERROR_INVALID_CONTEXT;
    if (CUresult bad = thread.resolve(api::Kind::CONTEXT, true, handle)) return bad;
    *version = static_cast<unsigned>(thread.session.driverVersion);
    return CUDA_SUCCESS;
  });
}

VGPU_EXPORT CUresult CUDAAPI cuCtxGetFlags(unsigned int* flags) {
  return enterContext([&](Thread& thread) -> CUresult {
    if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
    uint64_t current = thread.contextStack.back();
    *flags = current == thread.session.primaryContext(thread.device())
                 ? primaryFlags[thread.device()].load()
                 : thread.session.handles.find(api::Kind::CONTEXT, current)->flags;
    return CUDA_SUCCESS;
  });
}

VGPU_EXPORT CUresult CUDAAPI cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  return enterContext([&](Thread& thread) -> CUresult {
    auto& info = thread.session.devices[thread.device()];
    if (least != nullptr) *least = info.leastPriority;
    if (greatest != nullptr) *greatest = info.greatestPriority;
    return CUDA_SUCCESS;
  });
}

VGPU_EXPORT CUresult CUDAAPI cuCtxSynchronize() {
  return enter([&](Thread& thread) { return synchronizeDevice(thread, thread.device()); });
}

}  // extern "C"
