// Green contexts, their contexts and their streams.
#include <algorithm>

#include "intercept/driver/shared.h"

using namespace vgpu;
using namespace vgpu::client;

namespace {

constexpr int defaultPriority = 0;

CUresult makeStream(Thread& thread, const GreenContextState& green, unsigned flags, int priority, uint64_t& made) {
  HandleTable& handles = thread.session.handles;
  made = handles.create(api::Kind::STREAM, green.device(), green.converted.load(std::memory_order_relaxed));
  auto* state = handles.find<api::Kind::STREAM>(made);
  state->flags = flags;
  state->priority = priority;
  Call<api::Cuda::GreenStreamCreateParams> frame(thread.of(made), api::Method::greenStreamCreate);
  frame->setStream(made);
  frame->setGreen(green.handle.load(std::memory_order_relaxed));
  frame->setPriority(priority);
  CUresult error = frame.post();
  if (error != CUDA_SUCCESS) handles.destroy(made);
  return error;
}

// What the worker makes of a descriptor.
CUresult make(Thread& thread, const ResourceDescriptorState& descriptor, uint64_t green, Multiprocessors& has) {
  Call<api::Cuda::GreenCreateParams> frame(thread.on(handleDevice(green)), api::Method::greenCreate,
                                           dataWords(descriptor.parts.size() * sizeof(uint32_t)));
  frame->setGreen(green);
  frame->setParent(descriptor.origin.parent);
  frame->setMultiprocessors(descriptor.multiprocessors);
  frame->setFlags(descriptor.origin.flags);
  frame->setLeast(descriptor.origin.least);
  frame->setGroups(descriptor.origin.groups);
  frame->setParts(kj::arrayPtr(descriptor.parts.data(), descriptor.parts.size()));
  if (CUresult error = frame.call()) return error;
  auto reported = frame.results<api::Cuda::GreenCreateResults>();
  has = {reported.getMultiprocessors(), reported.getLeast(), reported.getAlignment()};
  return CUDA_SUCCESS;
}

// With its context and its default stream.
CUresult createGreen(Thread& thread, const ResourceDescriptorState& descriptor, uint64_t& green) {
  Session& session = thread.session;
  HandleTable& handles = session.handles;
  const unsigned device = descriptor.origin.device;
  Multiprocessors has;
  green = handles.reserve(api::Kind::GREEN_CONTEXT, device);
  if (CUresult error = make(thread, descriptor, green, has)) return handles.abandon(green), error;
  const uint64_t primary = session.primaryContext(device);
  const uint64_t converted = handles.create(api::Kind::CONTEXT, device);
  handles.publish<api::Kind::GREEN_CONTEXT>(green, primary, [&](GreenContextState& state) {
    state.converted = converted;
    state.has = has;
  });
  auto& context = *handles.find<api::Kind::CONTEXT>(converted);
  context.flags = session.contexts.flagsOf(primary);
  uint64_t stream = 0;
  CUresult error = makeStream(thread, *handles.find<api::Kind::GREEN_CONTEXT>(green), CU_STREAM_DEFAULT, defaultPriority, stream);
  context.defaultStream = stream;
  context.green = green;
  if (error != CUDA_SUCCESS) endGreen(thread, green);
  return error;
}

}  // namespace

CUresult vgpu::client::createGreenStream(Thread& thread, uint64_t green, unsigned flags, int priority, CUstream* stream) {
  auto* state = thread.session.handles.find<api::Kind::GREEN_CONTEXT>(green);
  if (state == nullptr) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  uint64_t made = 0;
  if (CUresult error = makeStream(thread, *state, flags, priority, made)) return error;
  *stream = fromWire<CUstream>(made);
  return thread.delayNewStream(made);
}

CUresult vgpu::client::endGreen(Thread& thread, uint64_t green) {
  Session& session = thread.session;
  auto* state = session.handles.find<api::Kind::GREEN_CONTEXT>(green);
  const uint64_t converted = state == nullptr ? 0 : state->converted.load(std::memory_order_relaxed);
  if (converted == 0 || !session.contexts.end(converted)) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  session.greenContexts.keepEnded(converted);
  for (uint64_t stream : session.handles.live(api::Kind::STREAM, handleDevice(green), converted)) {
    session.greenContexts.keepEnded(stream);
    thread.destroyStream(stream);
  }
  session.handles.destroy(green);
  Call<api::Cuda::GreenDestroyParams> frame(thread.of(green), api::Method::greenDestroy);
  frame->setGreen(green);
  return frame.post();
}

bool vgpu::client::releaseOfGreen(Thread& thread, uint64_t green) {
  bool last = false;
  thread.session.contexts.release(handleDevice(green), last);
  return last;
}

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

uint32_t vgpu::client::multiprocessorsOf(Thread& thread, uint64_t stream) {
  HandleTable& handles = thread.session.handles;
  auto* state = handles.find<api::Kind::STREAM>(stream);
  auto* context = state == nullptr ? nullptr : handles.find<api::Kind::CONTEXT>(state->context.load(std::memory_order_relaxed));
  auto* green = context == nullptr ? nullptr : handles.find<api::Kind::GREEN_CONTEXT>(context->green.load(std::memory_order_relaxed));
  if (green != nullptr) return green->has.count;
  return static_cast<uint32_t>(thread.session.devices[thread.deviceOf(stream)].attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
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
      if (CUresult error = describeDevice(thread, device, whole)) return error;
      descriptor = &whole;
    }
    if (descriptor->origin.device != device) return CUDA_ERROR_INVALID_DEVICE;
    const uint64_t parent = descriptor->origin.parent;
    if (parent != 0 && !session.handles.isLive(api::Kind::GREEN_CONTEXT, parent)) return CUDA_ERROR_INVALID_VALUE;
    session.contexts.retain(device);
    uint64_t green = 0;
    if (CUresult error = createGreen(thread, *descriptor, green)) {
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
    if (CUresult error = endGreen(thread, green)) return error;
    return releaseOfGreen(thread, green) ? endContext(thread, thread.session.primaryContext(handleDevice(green))) : CUDA_SUCCESS;
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
    return createGreenStream(thread, green, flags, priority, phStream);
  });
}

}  // extern "C"
