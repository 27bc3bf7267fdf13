// Events: the GPU writes each record's position into its stream's completion word, so queries and waits need no worker.
#include "intercept/driver/shared.h"
#include "intercept/session/ring-order.h"

using namespace vgpu;
using namespace vgpu::client;

namespace {

// The checks that cuEventElapsedTime makes of each event before it computes the time.
CUresult checkTimed(Thread& thread, const EventState& event) {
  if ((event.flags & CU_EVENT_DISABLE_TIMING) != 0 || event.record.get().sequence == 0) return CUDA_ERROR_INVALID_HANDLE;
  return queryEvent(thread, event);
}

CUresult elapsed(float* milliseconds, CUevent start, CUevent end) {
  return enter([&](Thread& thread) -> CUresult {
    if (milliseconds == nullptr) return CUDA_ERROR_INVALID_VALUE;
    ElapsedTimes::Record records[2];
    auto owner = [&](CUevent of) { return thread.session.handles.contextOf<api::Kind::EVENT>(toWire(of)); };
    if (owner(start) != owner(end)) return CUDA_ERROR_INVALID_HANDLE;
    for (int i = 0; i < 2; ++i) {
      uint64_t event = toWire(i == 0 ? start : end);
      if (thread.session.captures.concernsEvents())
        if (CUresult refused = thread.session.captures.refuseEvent(event)) return refused;
      auto* entry = thread.session.handles.find<api::Kind::EVENT>(event);
      if (entry == nullptr) return CUDA_ERROR_INVALID_HANDLE;
      records[i] = {event, entry->record.get().sequence};
      if (CUresult bad = checkTimed(thread, *entry)) return bad;
    }
    ElapsedTimes& reported = thread.session.elapsedTimes;
    if (auto known = reported.find(records[0], records[1])) return *milliseconds = *known, CUDA_SUCCESS;
    Call<api::Cuda::EventElapsedTimeParams> frame(thread.of(toWire(end)), api::Method::eventElapsedTime);
    frame->setStart(toWire(start));
    frame->setEnd(toWire(end));
    if (CUresult error = frame.call()) return error;
    *milliseconds = frame.results<api::Cuda::EventElapsedTimeResults>().getMilliseconds();
    reported.add(records[0], records[1], *milliseconds);
    return CUDA_SUCCESS;
  });
}

template <typename Params>
CUresult recordIn(Thread& thread, api::Method method, EventState& event, uint64_t stream) {
  Call<Params> frame(thread.of(stream), method);
  frame->setEvent(event.handle.load(std::memory_order_relaxed));
  frame.setStream(stream);
  StreamCompletion* streamCompletion = frame.streamCompletion();
  if (streamCompletion == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  auto completion = streamCompletion->take(thread.session.completionWords, frame.device());
  if (!completion) return CUDA_ERROR_OUT_OF_MEMORY;
  frame->setLine(*completion);
  streamCompletion->expect(&thread, frame.sequence());
  event.stream.store(stream, std::memory_order_relaxed);
  event.record.set(&thread, {frame.sequence(), *completion});
  return event.isShared() ? frame.call() : frame.post();
}

}  // namespace

CUresult vgpu::client::recordEvent(CUevent hEvent, CUstream hStream, unsigned flags, const CUgraphEdgeData& edge) {
  return onEvent(hEvent, [&](Thread& thread, EventState& event) -> CUresult {
    uint64_t stream = toWire(hStream);
    if (CUresult bad = thread.resolve(api::Kind::STREAM, true, stream)) return bad;
    if (!thread.isInContextOf(event, stream)) return CUDA_ERROR_INVALID_HANDLE;
    const bool isExternal = flags == CU_EVENT_RECORD_EXTERNAL;
    if (thread.session.captures.concernsEvents()) [[unlikely]]
      if (auto captured = thread.session.captures.record(thread, toWire(hEvent), stream, isExternal, edge)) return *captured;
    if (isExternal) return CUDA_ERROR_INVALID_VALUE;
    // Another session may learn of the record outside CUDA, so the record of a shared event must exist in the driver.
    if (event.isShared())
      return recordIn<api::Cuda::EventRecordSharedParams>(thread, api::Method::eventRecordShared, event, stream);
    return recordIn<api::Cuda::EventRecordParams>(thread, api::Method::eventRecord, event, stream);
  });
}

extern "C" {

// The stream waits for the event's present record, whatever happens to the event before the frame is executed. For an event of another
// device the frame is executed only after the record has been issued, so at a barrier no stream waits for a record that is not issued.
VGPU_EXPORT CUresult CUDAAPI cuStreamWaitEvent(CUstream hStream, CUevent hEvent, unsigned int Flags) {
  return onEvent(hEvent, [&](Thread& thread, EventState& event) -> CUresult {
    uint64_t stream = toWire(hStream);
    if (CUresult bad = thread.resolve(api::Kind::STREAM, true, stream)) return bad;
    const bool isExternal = Flags == CU_EVENT_WAIT_EXTERNAL;
    if (thread.session.captures.concernsEvents()) [[unlikely]]
      if (auto captured = thread.session.captures.wait(thread, toWire(hEvent), stream, isExternal)) return *captured;
    if (Flags != CU_EVENT_WAIT_DEFAULT) return CUDA_ERROR_INVALID_VALUE;
    const unsigned device = thread.deviceOf(stream);
    if (event.isShared()) {  // any session may record it: waits for its latest record
      Call<api::Cuda::StreamWaitSharedParams> frame(thread.on(device), api::Method::streamWaitShared);
      frame->setHStream(stream);
      frame->setHEvent(toWire(hEvent));
      frame.inStream(stream);
      return frame.call();
    }
    const EventRecord::Value record = event.record.get();
    if (record.sequence == 0) return CUDA_SUCCESS;  // never recorded
    if (event.device() == device) {
      Call<api::Cuda::StreamWaitEventParams> frame(thread.on(device), api::Method::streamWaitEvent);
      frame->setHStream(stream);
      frame->setHEvent(toWire(hEvent));
      frame->setFlags(Flags);
      frame.inStream(stream);
      return frame.post();
    }
    return awaitFence(thread, stream, {event.device(), record});
  });
}

VGPU_EXPORT CUresult CUDAAPI cuEventElapsedTime_v2(float* pMilliseconds, CUevent hStart, CUevent hEnd) {
  return elapsed(pMilliseconds, hStart, hEnd);
}

}  // extern "C"
