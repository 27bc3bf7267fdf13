// Streams, and waiting for them: the GPU itself writes the completion word, so the worker is not on the return path.
#include "cuda-handlers.h"

namespace vgpu::stub {

CUresult streamSynchronize(Execution& on, const api::FrameReader<api::Cuda::StreamSynchronizeParams>& p, Reply& reply) {
  reply.leaveToGpu();
  return on.signalWait(p.getStream(), on.shared().slot(on.slotIndex()).done, on.sequence());
}

CUresult ctxSynchronize(Execution& on, const api::FrameReader<api::Cuda::CtxSynchronizeParams>&, Reply& reply) {
  reply.leaveToGpu();
  return on.signalAfterAll(on.shared().slot(on.slotIndex()).done, on.sequence());
}

// A finished stream may have printed: reports the text to the program's next launch.
CUresult streamQuery(Execution& on, const api::FrameReader<api::Cuda::StreamQueryParams>& p, Reply&) {
  auto stream = fromWire<CUstream>(on.handles.getOrNull(api::Kind::STREAM, p.getHStream()));
  CUresult state = on.driver.cuStreamQuery(stream);
  if (state != CUDA_SUCCESS || !on.session.prints) return state;
  on.collectOutput();
  on.session.tellOutput();
  return CUDA_SUCCESS;
}

// A later wait for the device must also wait for this stream's work.
CUresult streamDestroy(Execution& on, const api::FrameReader<api::Cuda::StreamDestroyParams>& p, Reply&) {
  auto stream = fromWire<CUstream>(on.handles.get(api::Kind::STREAM, p.getHStream()));
  if (CUresult error = on.gpu.progress.joinDestroyed(p.getHStream())) return error;
  on.handles.remove(api::Kind::STREAM, p.getHStream());
  on.greenContexts.forgetStream(p.getHStream());
  return on.driver.cuStreamDestroy_v2(stream);
}

CUresult streamFence(Execution& on, const api::FrameReader<api::Cuda::StreamFenceParams>& p, Reply&) {
  if (p.getLine() >= completionWordCount) return CUDA_ERROR_INVALID_VALUE;
  auto& word = on.shared().completionWord(p.getLine()).done;
  return p.getStream() == 0 ? on.signalWait(0, word, on.sequence()) : on.signal(on.stream(p.getStream()), word, on.sequence());
}

CUresult hostFunction(Execution& on, const api::FrameReader<api::Cuda::HostFunctionParams>& p, Reply&) {
  CUstream stream = on.stream(p.getStream());
  if (p.getLine() >= completionWordCount) return CUDA_ERROR_INVALID_VALUE;
  CompletionWord& completion = on.shared().completionWord(p.getLine());
  if (CUresult error = on.signal(stream, completion.done, on.sequence())) return error;
  return on.await(stream, completion.answered, on.sequence());
}

}  // namespace vgpu::stub
