// By hand: waiting, and events. The GPU itself writes that it has come to a place: the worker is not on the return path.
#include "cuda-handlers.h"

namespace vgpu::stub {

CUresult streamSynchronize(Execution& on, const api::FrameReader<api::Cuda::StreamSynchronizeParams>& p, Answer& answer) {
  answer.leaveToGpu();
  return on.signal(on.stream(p.getStream()), on.shared().slot(on.slotIndex()).done, on.stamp());
}

CUresult ctxSynchronize(Execution& on, const api::FrameReader<api::Cuda::CtxSynchronizeParams>&, Answer& answer) {
  answer.leaveToGpu();
  return on.signalAfterAll(on.shared().slot(on.slotIndex()).done, on.stamp());
}

// A stream that is done has printed: the program's next launch is told of that.
CUresult streamQuery(Execution& on, const api::FrameReader<api::Cuda::StreamQueryParams>& p, Answer&) {
  auto stream = fromWire<CUstream>(on.handles.getOrNull(api::Kind::STREAM, p.getHStream()));
  CUresult state = on.driver.cuStreamQuery(stream);
  if (state != CUDA_SUCCESS || !on.prints) return state;
  on.collectOutput();
  on.tellOutput();
  return CUDA_SUCCESS;
}

// Whoever waits for the device waits for what the stream was given, too.
CUresult streamDestroy(Execution& on, const api::FrameReader<api::Cuda::StreamDestroyParams>& p, Answer&) {
  auto stream = fromWire<CUstream>(on.handles.get(api::Kind::STREAM, p.getHStream()));
  if (CUresult error = on.progressOfStream(p.getHStream()).joinDestroyed(p.getHStream())) return error;
  on.handles.remove(api::Kind::STREAM, p.getHStream());
  return on.driver.cuStreamDestroy_v2(stream);
}

CUresult eventRecord(Execution& on, const api::FrameReader<api::Cuda::EventRecordParams>& p, Answer&) {
  auto event = fromWire<CUevent>(on.handles.get(api::Kind::EVENT, p.getEvent()));
  CUstream stream = on.stream(p.getStream());
  if (p.getLine() >= eventLineCount) return CUDA_ERROR_INVALID_VALUE;
  if (CUresult error = on.driver.cuEventRecord(event, stream)) return error;
  on.eventTimes.recorded(p.getEvent());
  return on.signal(stream, on.shared().eventLine(p.getLine()).done, on.stamp());
}

CUresult streamMark(Execution& on, const api::FrameReader<api::Cuda::StreamMarkParams>& p, Answer&) {
  if (p.getLine() >= eventLineCount) return CUDA_ERROR_INVALID_VALUE;
  return on.signal(on.stream(p.getStream()), on.shared().eventLine(p.getLine()).done, on.stamp());
}

CUresult hostFunction(Execution& on, const api::FrameReader<api::Cuda::HostFunctionParams>& p, Answer&) {
  CUstream stream = on.stream(p.getStream());
  if (p.getLine() >= eventLineCount) return CUDA_ERROR_INVALID_VALUE;
  EventLine& line = on.shared().eventLine(p.getLine());
  if (p.getStream() != 0)  // see DeviceProgress
    if (CUresult error = on.progress(on.device()).joinLegacy()) return error;
  if (CUresult error = on.signal(stream, line.done, on.stamp())) return error;
  return on.await(stream, line.answered, on.stamp());
}

CUresult eventDestroy(Execution& on, const api::FrameReader<api::Cuda::EventDestroyParams>& p, Answer&) {
  auto event = fromWire<CUevent>(on.handles.get(api::Kind::EVENT, p.getHEvent()));
  on.handles.remove(api::Kind::EVENT, p.getHEvent());
  on.eventTimes.forget(p.getHEvent());
  return on.driver.cuEventDestroy_v2(event);
}

CUresult eventElapsedTime(Execution& on, const api::FrameReader<api::Cuda::EventElapsedTimeParams>& p, Answer& answer) {
  auto start = fromWire<CUevent>(on.handles.get(api::Kind::EVENT, p.getStart()));
  auto end = fromWire<CUevent>(on.handles.get(api::Kind::EVENT, p.getEnd()));
  float milliseconds = 0;
  if (CUresult error = on.eventTimes.elapsed(on.device(), p.getStart(), start, p.getEnd(), end, milliseconds)) return error;
  answer.init<api::Cuda::EventElapsedTimeResults>().setMilliseconds(milliseconds);
  return CUDA_SUCCESS;
}

}  // namespace vgpu::stub
