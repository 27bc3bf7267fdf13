#include "intercept/session/green-contexts.h"

#include <algorithm>

#include "intercept/session/call.h"

namespace vgpu::client {

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

// Makes the green context that `descriptor` describes in the worker.
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

}  // namespace

CUresult GreenContexts::create(Thread& thread, const ResourceDescriptorState& descriptor, uint64_t& green) {
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
  if (error != CUDA_SUCCESS) session.greenContexts.end(thread, green);
  return error;
}

CUresult GreenContexts::createStream(Thread& thread, uint64_t green, unsigned flags, int priority, uint64_t& stream) {
  auto* state = thread.session.handles.find<api::Kind::GREEN_CONTEXT>(green);
  if (state == nullptr) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  if (CUresult fault = thread.session.fault(state->device())) return fault;
  const DeviceInfo& device = thread.session.devices[state->device()];
  priority = std::clamp(priority, device.greatestPriority, device.leastPriority);
  if (CUresult error = makeStream(thread, *state, flags, priority, stream)) return error;
  return thread.delayNewStream(stream);
}

CUresult GreenContexts::end(Thread& thread, uint64_t green) {
  Session& session = thread.session;
  auto* state = session.handles.find<api::Kind::GREEN_CONTEXT>(green);
  const uint64_t converted = state == nullptr ? 0 : state->converted.load(std::memory_order_relaxed);
  if (converted == 0 || !session.contexts.end(converted)) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  keepEnded(converted);
  for (uint64_t stream : session.handles.live(api::Kind::STREAM, handleDevice(green), converted)) {
    keepEnded(stream);
    thread.destroyStream(stream);
  }
  session.handles.destroy(green);
  Call<api::Cuda::GreenDestroyParams> frame(thread.of(green), api::Method::greenDestroy);
  frame->setGreen(green);
  return frame.post();
}

uint32_t GreenContexts::multiprocessorsOf(Thread& thread, uint64_t stream) {
  HandleTable& handles = thread.session.handles;
  auto* state = handles.find<api::Kind::STREAM>(stream);
  auto* context = state == nullptr ? nullptr : handles.find<api::Kind::CONTEXT>(state->context.load(std::memory_order_relaxed));
  auto* green =
      context == nullptr ? nullptr : handles.find<api::Kind::GREEN_CONTEXT>(context->green.load(std::memory_order_relaxed));
  if (green != nullptr) return green->has.count;
  return static_cast<uint32_t>(
      thread.session.devices[thread.deviceOf(stream)].attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
}

}  // namespace vgpu::client
