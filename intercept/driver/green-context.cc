// Entries about green contexts that rows cannot express (session/green-contexts.h).
#include "intercept/driver/shared.h"

using namespace vgpu;
using namespace vgpu::client;

CUresult vgpu::client::contextsOfStream(CUstream stream, CUcontext* context, CUgreenCtx* green) {
  return enter([&](Thread& thread) -> CUresult {
    uint64_t handle = toWire(stream);
    if (CUresult bad = thread.resolve(api::Kind::STREAM, true, handle)) return bad;
    auto* state = thread.session.handles.find<api::Kind::STREAM>(handle);
    const uint64_t found = state == nullptr ? thread.context() : state->context.load(std::memory_order_relaxed);
    auto* of = thread.session.handles.find<api::Kind::CONTEXT>(found);
    if (context != nullptr) *context = fromWire<CUcontext>(thread.session.contexts.ownerOf(found));
    if (green != nullptr) *green = fromWire<CUgreenCtx>(of == nullptr ? 0 : of->green.load(std::memory_order_relaxed));
    return CUDA_SUCCESS;
  });
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
      releaseContext(thread, device);
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
    CUresult released = releaseContext(thread, handleDevice(green));
    return released == CUDA_ERROR_INVALID_CONTEXT ? CUDA_SUCCESS : released;  // a reset has released all retains already
  });
}

}  // extern "C"
