#include "stub/emulator/stream/event.h"

#include "stub/emulator/driver/driver.h"
#include "stub/emulator/stream/graph.h"

namespace vgpu::emulator::api {

Action recordAction(const Event& event, std::shared_ptr<Event::Recording> recording) {
  const uint64_t number = event.shared ? event.shared->begin() : 0;
  return [recording = std::move(recording), shared = event.shared, number] {
    recording->passed = std::chrono::steady_clock::now();
    if (shared) shared->finish(number);
    return Outcome::finished;
  };
}

Action awaitAction(const Event& event) {
  return [shared = event.shared, latest = event.shared->latest()] {
    return shared->isDone(latest) ? Outcome::finished : Outcome::waiting;
  };
}

namespace {

void record(Stream& stream, Event& event) {
  auto recording = std::make_shared<Event::Recording>();
  TaskRef task = stream.submit({.weight = Weight::light, .action = recordAction(event, recording)});
  event.replace(std::move(recording), std::move(task));
}

}  // namespace
}  // namespace vgpu::emulator::api

using namespace vgpu::emulator::api;

CUresult CUDAAPI cuEventCreate(CUevent* handle, unsigned flags) {
  return enterContext([&](Context& context) {
    constexpr unsigned known = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;
    require(handle != nullptr && (flags & ~known) == 0);
    const bool isShared = flags & CU_EVENT_INTERPROCESS;
    require(!isShared || (flags & CU_EVENT_DISABLE_TIMING));
    *handle = context.driver.events.add(std::make_shared<Event>(context, flags, isShared ? SharedRecords::make() : nullptr));
  });
}

CUresult CUDAAPI cuEventDestroy_v2(CUevent handle) {
  return enterDriver([&](Driver& driver) {
    requireEventUnnamed(driver, *driver.events.get(handle));
    driver.events.remove(handle);
  });
}

CUresult CUDAAPI cuEventRecordWithFlags(CUevent handle, CUstream streamHandle, unsigned flags) {
  return enterContext([&](Context& context) {
    require((flags & ~unsigned{CU_EVENT_RECORD_EXTERNAL}) == 0);
    std::shared_ptr<Event> event = context.driver.events.get(handle);
    std::shared_ptr<Stream> stream = streamOf(context, streamHandle);
    if (&event->context != &stream->context) refuse(CUDA_ERROR_INVALID_HANDLE);
    if (!stream->recordCaptured(event, flags & CU_EVENT_RECORD_EXTERNAL)) record(*stream, *event);
  });
}

CUresult CUDAAPI cuEventRecord(CUevent event, CUstream stream) {
  return cuEventRecordWithFlags(event, stream, CU_EVENT_RECORD_DEFAULT);
}

CUresult CUDAAPI cuStreamWaitEvent(CUstream streamHandle, CUevent handle, unsigned flags) {
  return enterContext([&](Context& context) {
    require((flags & ~unsigned{CU_EVENT_WAIT_EXTERNAL}) == 0);
    std::shared_ptr<Event> event = context.driver.events.get(handle);
    std::shared_ptr<Stream> stream = streamOf(context, streamHandle);
    if (stream->waitCaptured(event, flags & CU_EVENT_WAIT_EXTERNAL)) return;
    if (event->shared) {
      stream->submit({.weight = Weight::light, .action = awaitAction(*event)});
      return;
    }
    std::shared_ptr<Event::Recording> recording = event->recording();
    if (!recording || recording->task->done()) return;
    stream->submit({.weight = Weight::light}, {&recording->task, 1});
  });
}

CUresult CUDAAPI cuEventQuery(CUevent handle) {
  return enterDriver([&](Driver& driver) {
    std::shared_ptr<Event> event = driver.events.get(handle);
    std::shared_ptr<Event::Recording> recording = event->recording();
    event->context.check();
    event->refuseCaptured();
    const bool isDone = event->shared ? event->shared->isDone(event->shared->latest()) : !recording || recording->task->done();
    return isDone ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
  });
}

CUresult CUDAAPI cuEventSynchronize(CUevent handle) {
  return enterDriver([&](Driver& driver) {
    std::shared_ptr<Event> event = driver.events.get(handle);
    event->refuseCaptured();
    if (event->shared) {
      for (uint64_t latest = event->shared->latest(); !event->shared->isDone(latest);) {
        event->context.check();
        std::this_thread::sleep_for(std::chrono::microseconds(20));
      }
    } else if (std::shared_ptr<Event::Recording> recording = event->recording()) {
      recording->task->wait();
    }
    event->context.flushOutput();
    event->context.check();
  });
}

CUresult CUDAAPI cuEventElapsedTime_v2(float* milliseconds, CUevent from, CUevent to) {
  return enterDriver([&](Driver& driver) {
    require(milliseconds != nullptr);
    std::shared_ptr<Event> first = driver.events.get(from), second = driver.events.get(to);
    if ((first->flags | second->flags) & CU_EVENT_DISABLE_TIMING) refuse(CUDA_ERROR_INVALID_HANDLE);
    std::shared_ptr<Event::Recording> start = first->recording(), stop = second->recording();
    if (!start || !stop) refuse(CUDA_ERROR_INVALID_HANDLE);
    first->context.check();
    if (!start->task->done() || !stop->task->done()) return CUDA_ERROR_NOT_READY;
    *milliseconds = std::chrono::duration<float, std::milli>(stop->passed - start->passed).count();
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuIpcGetEventHandle(CUipcEventHandle* handle, CUevent eventHandle) {
  return enterDriver([&](Driver& driver) {
    require(handle != nullptr);
    std::shared_ptr<Event> event = driver.events.get(eventHandle);
    if (!event->shared) refuse(CUDA_ERROR_INVALID_HANDLE);
    *handle = event->shared->handle();
  });
}

CUresult CUDAAPI cuIpcOpenEventHandle(CUevent* handle, CUipcEventHandle shared) {
  return enterContext([&](Context& context) {
    require(handle != nullptr);
    constexpr unsigned flags = CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING;
    *handle = context.driver.events.add(std::make_shared<Event>(context, flags, SharedRecords::open(shared)));
  });
}

// The version before CUDA 12.8.
CUresult CUDAAPI cuEventElapsedTime(float* milliseconds, CUevent from, CUevent to) {
  return cuEventElapsedTime_v2(milliseconds, from, to);
}
