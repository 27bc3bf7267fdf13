// Events. Their times are kept over a suspend: event-times.h.
#include "cuda-handlers.h"
#include "stub/worker/kinds/kind.h"

namespace vgpu::stub {

namespace {

// Writes the completion word before the record: work in another stream that waits for the event must not appear finished while the event
// does not. A thread that has seen the word finds the record all but executed.
CUresult record(Execution& on, const auto& p) {
  auto event = fromWire<CUevent>(on.handles.get(api::Kind::EVENT, p.getEvent()));
  CUstream stream = on.stream(p.getStream());
  if (p.getLine() >= completionWordCount) return CUDA_ERROR_INVALID_VALUE;
  if (CUresult error = on.signal(stream, on.shared().completionWord(p.getLine()).done, on.sequence())) return error;
  if (CUresult error = on.driver.cuEventRecord(event, stream)) return error;
  on.eventTimes.recorded(p.getEvent());
  return CUDA_SUCCESS;
}

}  // namespace

CUresult eventRecord(Execution& on, const api::FrameReader<api::Cuda::EventRecordParams>& p, Reply&) { return record(on, p); }
CUresult eventRecordShared(Execution& on, const api::FrameReader<api::Cuda::EventRecordSharedParams>& p, Reply&) {
  return record(on, p);
}

CUresult eventNumbered(Execution& on, const api::FrameReader<api::Cuda::EventNumberedParams>& p, Reply&) {
  on.eventTimes.recorded(p.getEvent());
  return CUDA_SUCCESS;
}

CUresult eventDestroy(Execution& on, const api::FrameReader<api::Cuda::EventDestroyParams>& p, Reply&) {
  auto event = fromWire<CUevent>(on.handles.take(api::Kind::EVENT, p.getHEvent()));
  on.eventTimes.forget(p.getHEvent());
  on.session.endSharing(api::Kind::EVENT, p.getHEvent());
  return on.driver.cuEventDestroy_v2(event);
}

CUresult eventElapsedTime(Execution& on, const api::FrameReader<api::Cuda::EventElapsedTimeParams>& p, Reply& reply) {
  auto start = fromWire<CUevent>(on.handles.get(api::Kind::EVENT, p.getStart()));
  auto end = fromWire<CUevent>(on.handles.get(api::Kind::EVENT, p.getEnd()));
  float milliseconds = 0;
  if (CUresult error = on.eventTimes.elapsed(p.getStart(), start, p.getEnd(), end, milliseconds)) return error;
  reply.init<api::Cuda::EventElapsedTimeResults>().setMilliseconds(milliseconds);
  return CUDA_SUCCESS;
}

namespace {

void drop(Execution& on) { on.eventTimes.forgetAll(); }

// A row: virtual handle, time on the clock of its device.
Rows save(SessionState& session) {
  Rows rows;
  for (unsigned device : session.usedDevices()) {
    if (session.isEnded(device)) continue;
    Execution& on = session.select(device);
    for (auto [event, time] : on.eventTimes.times(on.handles.of(api::Kind::EVENT))) rows.push_back({event, time});
  }
  return rows;
}

bool isValid(const Row& row, uint64_t devices) { return handleDevice(numberIn(row, 0)) < devices; }

void restore(SessionState& session, const Rows& rows) {
  for (auto& row : rows) session.of(handleDevice(numberIn(row, 0))).eventTimes.load(numberIn(row, 0), timeIn(row, 1));
}

}  // namespace

const KindModule eventKind{
    .name = "eventTimes", .drop = drop, .columns = "nt", .isValid = isValid, .save = save, .restore = restore};

}  // namespace vgpu::stub
