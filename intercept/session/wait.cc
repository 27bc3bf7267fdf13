#include "intercept/session/wait.h"

#include <thread>

#include "intercept/session/call.h"
#include "vgpu/wire/futex.h"

namespace vgpu::client {

CUresult awaitDevice(Thread& thread, unsigned device) {
  Session& session = thread.session;
  if (session.progress[device].isIdle()) return CUDA_SUCCESS;
  Call<api::Cuda::CtxSynchronizeParams> frame(thread.on(device), api::Method::ctxSynchronize);
  uint64_t sequence = frame.sequence();
  CUresult result = frame.reach();
  if (result == CUDA_SUCCESS) raise(session.progress[device].knownDone, sequence);
  return result;
}

namespace {

// After a wait: writes what kernels have printed so far, and returns `result`.
CUresult delivered(Thread& thread, unsigned device, CUresult result) {
  if (thread.session.output.isExpected()) [[unlikely]] thread.session.output.deliver(thread, device);
  return result;
}

}  // namespace

CUresult synchronizeDevice(Thread& thread, unsigned device) {
  Session& session = thread.session;
  if (thread.takesDownContext && session.fault(device) != CUDA_SUCCESS) return CUDA_SUCCESS;  // nothing runs after a fault
  CUresult result = awaitDevice(thread, device);
  return delivered(thread, device, result != CUDA_SUCCESS ? result : session.takeError(device));
}

CUresult synchronizeHostMemory(Thread& thread, unsigned device) {
  Session& session = thread.session;
  for (unsigned each = 0; each < session.devices.size(); ++each)
    if (CUresult error = awaitDevice(thread, each); error != CUDA_SUCCESS && each == device && !thread.takesDownContext)
      return error;
  return thread.takesDownContext ? CUDA_SUCCESS : session.takeError(device);
}

bool isKnownIdle(Thread& thread, uint64_t stream) {
  if (thread.session.progress[thread.deviceOf(stream)].isIdle()) return true;
  auto* entry = thread.session.handles.find<api::Kind::STREAM>(stream);
  if (entry == nullptr) return false;
  const uint64_t last = entry->lastWork.get();
  if (entry->knownDone.load(std::memory_order_relaxed) >= last) return true;
  // Also if the last frame was a record or a fence whose number the GPU has written; the driver may report the stream busy a moment longer.
  const uint64_t expected = entry->depth.completion.expected();
  const auto word = entry->depth.completion.find();
  return word && expected >= last && !thread.session.output.isExpected() &&
         thread.session.segment.completionWord(*word).done.load(std::memory_order_acquire) >= expected;
}

namespace {

CUresult awaitStream(Thread& thread, uint64_t stream) {
  if (isKnownIdle(thread, stream)) return thread.session.takeError(thread.deviceOf(stream));
  Call<api::Cuda::StreamSynchronizeParams> frame(thread.of(stream), api::Method::streamSynchronize);
  uint64_t sequence = frame.sequence();
  frame->setStream(stream);
  CUresult result = frame.signal();
  auto* entry = thread.session.handles.find<api::Kind::STREAM>(stream);
  if (result == CUDA_SUCCESS && entry != nullptr) raise(entry->knownDone, sequence);
  return result;
}

}  // namespace

CUresult synchronizeStream(Thread& thread, uint64_t stream) {
  return delivered(thread, thread.deviceOf(stream), awaitStream(thread, stream));
}

CUresult awaitWorker(Thread& thread, unsigned device) {
  Call<api::Cuda::MemGetInfoParams> behind(thread.on(device), api::Method::memGetInfo);  // the reply of any later frame shows it
  return behind.call();
}

CUresult awaitTurn(Thread& thread, uint64_t stream) {
  Session& session = thread.session;
  const unsigned device = thread.deviceOf(stream);
  auto* entry = session.handles.find<api::Kind::STREAM>(stream);
  const bool blocks = entry != nullptr && (entry->flags.load(std::memory_order_relaxed) & CU_STREAM_NON_BLOCKING) == 0;
  // A wait for a stream only waits for its own work; a fence in it also comes after the legacy stream's work.
  StreamFence fence;
  if (!blocks || session.progress[device].isIdle() || fenceStream(thread, stream, fence) != CUDA_SUCCESS)
    return synchronizeStream(thread, stream);
  for (Backoff backoff; !isPast(session, fence);)
    if (!backoff.spin()) std::this_thread::sleep_for(std::chrono::nanoseconds(backoff.sleepNanoseconds()));
  if (session.lost.load(std::memory_order_relaxed)) return session.lossResult();
  const CUresult fault = session.faultOf(device, fence.record.sequence);
  return delivered(thread, device, fault != CUDA_SUCCESS ? fault : session.takeError(device));
}

StreamCompletion* findCompletion(Thread& thread, uint64_t stream) {
  if (stream == 0) return &thread.session.defaultStreamDepths[thread.deviceOf(stream)].completion;
  auto* entry = thread.session.handles.find<api::Kind::STREAM>(stream);
  return entry == nullptr ? nullptr : &entry->depth.completion;
}

CUresult fenceStream(Thread& thread, uint64_t stream, StreamFence& fence) {
  const unsigned device = thread.deviceOf(stream);
  StreamCompletion* completion = findCompletion(thread, stream);
  if (completion == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  auto word = completion->take(thread.session.completionWords, device);
  if (!word) return CUDA_ERROR_OUT_OF_MEMORY;
  Call<api::Cuda::StreamFenceParams> frame(thread.on(device), api::Method::streamFence);
  frame->setStream(stream);  // not by frame.setStream(): a fence is not counted as work
  frame->setLine(*word);
  completion->expect(&thread, frame.sequence());
  fence = {device, {frame.sequence(), *word}};
  return frame.post();
}

bool isPast(const Session& session, const StreamFence& fence) {
  const EventRecord::Value& record = fence.record;
  return session.segment.completionWord(record.completion).done.load(std::memory_order_acquire) >= record.sequence ||
         session.lost.load(std::memory_order_relaxed) || session.faultOf(fence.device, record.sequence) != CUDA_SUCCESS;
}

namespace {

// Whether the record `wanted` of the event has completed.
CUresult queryRecord(Thread& thread, const EventState& event, EventRecord::Value wanted) {
  Session& session = thread.session;
  // The GPU writes the completion word after all work before the record: the stream has passed that point.
  if (session.segment.completionWord(wanted.completion).done.load(std::memory_order_acquire) >= wanted.sequence) {
    // The stream is checked because another thread may be recording the event in another stream.
    auto* stream = session.handles.find<api::Kind::STREAM>(event.stream.load(std::memory_order_relaxed));
    if (stream != nullptr && stream->depth.completion.find() == wanted.completion) raise(stream->knownDone, wanted.sequence);
    return CUDA_SUCCESS;
  }
  if (session.lost.load(std::memory_order_relaxed)) return session.lossResult();
  if (CUresult fault = session.faultOf(event.device(), wanted.sequence)) return fault;
  return CUDA_ERROR_NOT_READY;
}

}  // namespace

namespace {

// Whether the latest record of a shared event has completed.
CUresult askDriver(Thread& thread, const EventState& event) {
  Call<api::Cuda::EventQueryParams> frame(thread.on(event.device()), api::Method::eventQuery);
  frame->setEvent(event.handle.load(std::memory_order_relaxed));
  return frame.call();
}

}  // namespace

CUresult queryEvent(Thread& thread, const EventState& event) {
  if (event.isShared()) return askDriver(thread, event);
  return queryRecord(thread, event, event.record.get());
}

CUresult synchronizeEvent(Thread& thread, const EventState& event) {
  Backoff backoff;
  CUresult state;
  EventRecord::Value wanted = event.record.get();
  while ((state = event.isShared() ? askDriver(thread, event) : queryRecord(thread, event, wanted)) == CUDA_ERROR_NOT_READY)
    if (!backoff.spin()) std::this_thread::sleep_for(std::chrono::nanoseconds(backoff.sleepNanoseconds()));
  expectWork(thread.session, event.device());
  return delivered(thread, event.device(), state != CUDA_SUCCESS ? state : thread.session.takeError(event.device()));
}

}  // namespace vgpu::client
