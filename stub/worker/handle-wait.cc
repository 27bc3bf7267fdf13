// By hand: waiting, and events. The GPU itself writes that it has come to a place: the worker is not on the return path.
#include "cuda-handlers.h"

namespace vgpu::stub {

CUresult streamSynchronize(Execution& on, const api::FrameReader<api::Cuda::StreamSynchronizeParams>& p, Answer& answer) {
  if (on.prints) return on.driver.cuStreamSynchronize(on.stream(p.getStream()));
  answer.leaveToGpu();
  return on.signal(on.stream(p.getStream()), on.shared().slot(on.slotIndex()).done, on.stamp());
}

// The legacy default stream comes after all work of blocking streams by itself; the others are joined to it.
CUresult ctxSynchronize(Execution& on, const api::FrameReader<api::Cuda::CtxSynchronizeParams>&, Answer& answer) {
  if (on.prints) return on.driver.cuCtxSynchronize();
  CUevent joined = nullptr;
  for (auto& [handle, real] : on.handles.of(api::Kind::STREAM)) {
    unsigned flags = 0;
    auto stream = fromWire<CUstream>(real);
    if (handleDevice(handle) != on.device()) continue;
    if (CUresult error = on.driver.cuStreamGetFlags(stream, &flags)) return error;
    if ((flags & CU_STREAM_NON_BLOCKING) == 0) continue;
    if (joined == nullptr)
      if (CUresult error = on.driver.cuEventCreate(&joined, CU_EVENT_DISABLE_TIMING)) return error;
    CUresult error = on.driver.cuEventRecord(joined, stream);
    if (error == CUDA_SUCCESS) error = on.driver.cuStreamWaitEvent(nullptr, joined, 0);
    if (error != CUDA_SUCCESS) {
      on.driver.cuEventDestroy_v2(joined);
      return error;
    }
  }
  if (joined != nullptr) on.driver.cuEventDestroy_v2(joined);  // the driver keeps it until the waits are over
  answer.leaveToGpu();
  return on.signal(nullptr, on.shared().slot(on.slotIndex()).done, on.stamp());
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
