// Events of whole contexts (cuCtxRecordEvent, cuCtxWaitEvent), which concern all streams of a context, later ones included.
//
// An internal stream joins the context's streams. To record, it waits for each of them, and the event is recorded in it. To wait, it waits
// for the event, and so does each stream of the context; streams created later wait for an event recorded in it.
#include "intercept/driver/shared.h"
#include "intercept/session/in-context.h"

namespace vgpu::client {

namespace {

// Makes the internal stream and event, in the current context. Makes them again if a reset of the device has destroyed them.
CUresult prepare(Thread& thread, ContextState::Joint& joint) {
  CUstream stream = nullptr;
  CUevent event = nullptr;
  if (thread.session.handles.isLive(api::Kind::STREAM, joint.stream)) return CUDA_SUCCESS;
  if (CUresult error = cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING)) return error;
  if (CUresult error = cuEventCreate(&event, CU_EVENT_DISABLE_TIMING)) return error;
  joint = {toWire(stream), toWire(event)};
  return CUDA_SUCCESS;
}

// The program's streams in a context: also the legacy stream, and in the primary context the streams of its green contexts.
std::vector<CUstream> streamsOf(Thread& thread, const ContextState& context) {
  const HandleTable& handles = thread.session.handles;
  std::vector<CUstream> streams;
  auto add = [&](const ContextState& of) {
    for (uint64_t stream : handles.live(api::Kind::STREAM, of.device(), of.handle))
      if (stream != of.past.stream && stream != of.future.stream) streams.push_back(fromWire<CUstream>(stream));
  };
  if (context.green.load(std::memory_order_relaxed) == 0) streams.push_back(CU_STREAM_LEGACY);
  add(context);
  if (thread.session.contexts.isPrimary(context.handle))
    for (uint64_t green : handles.live(api::Kind::GREEN_CONTEXT, context.device())) {
      auto* state = handles.find<api::Kind::GREEN_CONTEXT>(green);
      auto* converted = state == nullptr ? nullptr : handles.find<api::Kind::CONTEXT>(state->converted.load());
      if (converted != nullptr) add(*converted);
    }
  return streams;
}

// Runs `body` in a live context with a live event.
template <typename Body>
CUresult onContext(CUcontext handle, CUevent event, Body&& body) {
  return onEvent(event, [&](Thread& thread, EventState& state) -> CUresult {
    uint64_t context = toWire(handle);
    if (handle == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    if (CUresult bad = thread.resolve(api::Kind::CONTEXT, false, context)) return bad;
    if (!thread.session.contexts.isLive(context)) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    if (thread.session.captures.isActive())
      if (CUresult refused = thread.session.captures.refuseOnDevice(handleDevice(context))) return refused;
    auto& found = *thread.session.handles.find<api::Kind::CONTEXT>(context);
    InContext inIt(thread, context);  // the legacy stream is that of the current context
    std::lock_guard lock(found.joining);
    return body(thread, found, state);
  });
}

}  // namespace

CUresult recordContext(CUcontext context, CUevent event) {
  return onContext(context, event, [&](Thread& thread, ContextState& state, EventState& recorded) -> CUresult {
    if (recorded.context != thread.session.contexts.ownerOf(state.handle)) return CUDA_ERROR_INVALID_HANDLE;
    if (CUresult error = prepare(thread, state.past)) return error;
    const auto joint = fromWire<CUstream>(state.past.stream);
    const auto behind = fromWire<CUevent>(state.past.event);
    for (CUstream stream : streamsOf(thread, state)) {
      if (isKnownIdle(thread, stream == CU_STREAM_LEGACY ? 0 : toWire(stream))) continue;
      if (CUresult error = cuEventRecord(behind, stream)) return error;
      if (CUresult error = cuStreamWaitEvent(joint, behind, 0)) return error;
    }
    return cuEventRecord(event, joint);
  });
}

CUresult delayContext(CUcontext context, CUevent event) {
  return onContext(context, event, [&](Thread& thread, ContextState& state, EventState& awaited) -> CUresult {
    if (thread.session.captures.concernsEvents())
      if (CUresult refused = thread.session.captures.refuseEvent(toWire(event))) return refused;
    if (queryEvent(thread, awaited) == CUDA_SUCCESS) return CUDA_SUCCESS;
    if (CUresult error = prepare(thread, state.future)) return error;
    const auto joint = fromWire<CUstream>(state.future.stream);
    const auto before = fromWire<CUevent>(state.future.event);
    if (CUresult error = cuStreamWaitEvent(joint, event, 0)) return error;
    if (CUresult error = cuEventRecord(before, joint)) return error;
    state.delayedBy.store(state.future.event, std::memory_order_relaxed);
    for (CUstream stream : streamsOf(thread, state))
      if (CUresult error = cuStreamWaitEvent(stream, event, 0)) return error;
    return CUDA_SUCCESS;
  });
}

}  // namespace vgpu::client
