// What rows cannot say of green contexts (session/green-contexts.h).
#include <algorithm>

#include "intercept/driver/shared.h"

using namespace vgpu;
using namespace vgpu::client;

CUresult vgpu::client::greenIdentity(CUgreenCtx handle, unsigned long long* id) {
  return enterAny([&](Thread& thread) -> CUresult {
    if (id == nullptr) return CUDA_ERROR_INVALID_VALUE;
    uint64_t green = handle == nullptr ? thread.greenContext() : toWire(handle);
    if (CUresult bad = thread.resolve(api::Kind::GREEN_CONTEXT, false, green)) return bad;
    *id = green;
    return CUDA_SUCCESS;
  });
}

namespace {

// Runs `body` with the green context of a stream, and the regular one.
template <typename Body>
CUresult withContextsOf(CUstream stream, Body&& body) {
  return enter([&](Thread& thread) -> CUresult {
    uint64_t handle = toWire(stream);
    if (CUresult bad = thread.resolve(api::Kind::STREAM, true, handle)) return bad;
    auto* state = thread.session.handles.find<api::Kind::STREAM>(handle);
    const uint64_t context = state == nullptr ? thread.context() : state->context.load(std::memory_order_relaxed);
    auto* of = thread.session.handles.find<api::Kind::CONTEXT>(context);
    body(thread.session.contexts.ownerOf(context), of == nullptr ? 0 : of->green.load(std::memory_order_relaxed));
    return CUDA_SUCCESS;
  });
}

}  // namespace

CUresult vgpu::client::contextsOfStream(CUstream stream, CUcontext* context, CUgreenCtx* green) {
  if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return withContextsOf(stream, [&](uint64_t regular, uint64_t ofGreen) {
    *context = fromWire<CUcontext>(regular);
    if (green != nullptr) *green = fromWire<CUgreenCtx>(ofGreen);
  });
}

CUresult vgpu::client::greenOfStream(CUstream stream, CUgreenCtx* green) {
  if (green == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return withContextsOf(stream, [&](uint64_t, uint64_t ofGreen) { *green = fromWire<CUgreenCtx>(ofGreen); });
}

CUresult vgpu::client::recordGreen(CUgreenCtx green, CUevent event) {
  CUcontext context = nullptr;
  if (CUresult bad = cuCtxFromGreenCtx(&context, green)) return bad;
  return recordContext(context, event);
}

CUresult vgpu::client::delayGreen(CUgreenCtx green, CUevent event) {
  CUcontext context = nullptr;
  if (CUresult bad = cuCtxFromGreenCtx(&context, green)) return bad;
  return delayContext(context, event);
}

extern "C" {

VGPU_EXPORT CUresult CUDAAPI cuGreenCtxCreate(CUgreenCtx* phCtx, CUdevResourceDesc desc, CUdevice dev, unsigned int flags) {
  return enterAny([&](Thread& thread) -> CUresult {
    Session& session = thread.session;
    const ResourceDescriptorState* descriptor = session.handles.find<api::Kind::RESOURCE_DESCRIPTOR>(toWire(desc));
    if (phCtx == nullptr || flags != CU_GREEN_CTX_DEFAULT_STREAM || (desc != nullptr && descriptor == nullptr))
      return CUDA_ERROR_INVALID_VALUE;
    if (!session.hasDevice(dev)) return CUDA_ERROR_INVALID_DEVICE;
    const auto device = static_cast<unsigned>(dev);
    if (CUresult fault = session.fault(device)) return fault;
    ResourceDescriptorState whole;
    if (descriptor == nullptr) {
      if (CUresult error = session.greenResources.describeDevice(thread, device, whole)) return error;
      descriptor = &whole;
    }
    if (descriptor->origin.device != device) return CUDA_ERROR_INVALID_DEVICE;
    const uint64_t parent = descriptor->origin.parent;
    if (parent != 0 && !session.handles.isLive(api::Kind::GREEN_CONTEXT, parent)) return CUDA_ERROR_INVALID_VALUE;
    session.contexts.retain(device);
    uint64_t green = 0;
    if (CUresult error = GreenContexts::create(thread, *descriptor, green)) {
      bool last = false;
      session.contexts.release(device, last);
      if (last) endContext(thread, session.primaryContext(device));
      return error;
    }
    *phCtx = fromWire<CUgreenCtx>(green);
    return CUDA_SUCCESS;
  });
}

VGPU_EXPORT CUresult CUDAAPI cuGreenCtxDestroy(CUgreenCtx hCtx) {
  return enterAny([&](Thread& thread) -> CUresult {
    uint64_t green = toWire(hCtx);
    if (CUresult bad = thread.resolve(api::Kind::GREEN_CONTEXT, false, green)) return bad;
    if (CUresult error = thread.session.greenContexts.end(thread, green)) return error;
    bool last = false;
    thread.session.contexts.release(handleDevice(green), last);
    return last ? endContext(thread, thread.session.primaryContext(handleDevice(green))) : CUDA_SUCCESS;
  });
}

VGPU_EXPORT CUresult CUDAAPI cuGreenCtxStreamCreate(CUstream* phStream, CUgreenCtx greenCtx, unsigned int flags, int priority) {
  return enterAny([&](Thread& thread) -> CUresult {
    uint64_t green = toWire(greenCtx);
    if (CUresult bad = thread.resolve(api::Kind::GREEN_CONTEXT, false, green)) return bad;
    if (phStream == nullptr || flags != CU_STREAM_NON_BLOCKING) return CUDA_ERROR_INVALID_VALUE;
    const DeviceInfo& device = thread.session.devices[handleDevice(green)];
    if (CUresult fault = thread.session.fault(handleDevice(green))) return fault;
    priority = std::clamp(priority, device.greatestPriority, device.leastPriority);
    return GreenContexts::createStream(thread, green, flags, priority, phStream);
  });
}

}  // extern "C"
