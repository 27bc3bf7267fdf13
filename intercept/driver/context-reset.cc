#include "intercept/driver/context-reset.h"

#include "intercept/libraries/objects.h"
#include "intercept/session/entry.h"
#include "intercept/session/graph/executable.h"
#include "intercept/session/modules/modules.h"

namespace vgpu::client {

namespace {

// Makes `device` current, and allows this thread calls into a context that has ended.
class TakingDown {
 public:
  TakingDown(Thread& thread, unsigned device) : thread(thread) {
    thread.contextStack.push_back(thread.session.primaryContext(device));
    thread.takesDownContext = true;
  }
  ~TakingDown() {
    thread.takesDownContext = false;
    thread.contextStack.pop_back();
  }

 private:
  Thread& thread;
};

CUresult endGreenContext(Thread& thread, uint64_t green) {
  bool last = false;  // ignored: the caller ends the context anyway
  thread.session.contexts.release(handleDevice(green), last);
  return thread.session.greenContexts.end(thread, green);
}

// Ends the objects of `context`, or of the whole device if it is 0. The object list records each object's end, whatever the driver returns.
CUresult dropObjects(Thread& thread, unsigned device, uint64_t context) {
  Session& session = thread.session;
  CUresult first = CUDA_SUCCESS;
  auto keep = [&](CUresult result) {
    if (first == CUDA_SUCCESS) first = result;
  };
  for (uint64_t value : session.textures.values(device, ObjectKind::texture, context)) keep(cuTexObjectDestroy(value));
  for (uint64_t value : session.textures.values(device, ObjectKind::surface, context)) keep(cuSurfObjectDestroy(value));
  session.spareEvents.revive(thread, device, context);
#define KIND_END(kind, end) \
  for (uint64_t handle : session.handles.live(api::Kind::kind, device, context)) keep(end);
#include "cuda-kind-ends.inc"
  if (context == 0) session.graphMemories.endDevice(device);  // memory of graphs ends with a fault only
  keep(session.memory.freeAll(thread, device, context));
  if (context == 0) keep(session.virtualMemory.endDevice(thread, device));  // this memory belongs to no context
  session.peerAccess.forget(thread, device, context);
  session.contextSettings.end(thread, device, context);
  return first;
}

// Replaces the contexts that a fault has ended: a fault ends those of all devices and makes the worker's process unusable. `device` can be
// used again; the other devices have lost their objects and keep returning the fault until they are reset too. Their pending work is
// dropped, and the slabs and completion words that it used are reclaimed.
CUresult renewContext(Thread& thread, unsigned device) {
  Session& session = thread.session;
  CUresult result = CUDA_SUCCESS;
  std::vector<std::pair<unsigned, uint64_t>> ended;  // device and sequence number
  for (unsigned each = 0; each < session.devices.size(); ++each) {
    CUresult fault = session.fault(each);
    if (fault == CUDA_SUCCESS) continue;
    TakingDown current(thread, each);
    dropObjects(thread, each, 0);
    Call<api::Cuda::ContextResetParams> frame(thread, api::Method::contextReset);
    frame->setContext(each);
    session.resets[each].fault.store(fault, std::memory_order_relaxed);
    session.resets[each].sequence.store(frame.sequence(), std::memory_order_release);
    ended.push_back({each, frame.sequence()});
    if (CUresult answer = frame.call()) result = answer;
  }
  // An error: the fault is one of this worker process. If the fault happened in an earlier process, the worker has replied with success.
  if (result != CUDA_SUCCESS && (session.lost.load() || !session.renewWorker())) return result;
  for (auto [each, sequence] : ended) {
    raise(session.progress[each].knownDone, sequence);
    session.slabs.reclaim(each, sequence);
    session.hostFunctions[each].drop(sequence);
    session.registeredReads[each].drop(sequence);
    session.completionWords.contextEnded(each, sequence);
    session.deviceReplies[each].forget();
  }
  session.segment.header().fault[device].store(CUDA_SUCCESS);
  session.takeError(device);  // cleared: the fault has reported it already
  session.memory.trim(thread, device, 0);
  return CUDA_SUCCESS;
}

}  // namespace

CUresult endContext(Thread& thread, uint64_t context) {
  if (!thread.session.contexts.end(context)) return CUDA_SUCCESS;  // another thread has ended it
  unsigned device = handleDevice(context);
  TakingDown current(thread, device);
  CUresult before = synchronizeDevice(thread, device);
  if (thread.session.fault(device) != CUDA_SUCCESS) return renewContext(thread, device);
  CUresult dropped = dropObjects(thread, device, context);
  return before != CUDA_SUCCESS ? before : dropped;
}

CUresult releaseContext(Thread& thread, unsigned device) {
  bool last = false;
  if (!thread.session.contexts.release(device, last)) return CUDA_ERROR_INVALID_CONTEXT;
  return last ? endContext(thread, thread.session.primaryContext(device)) : CUDA_SUCCESS;
}

}  // namespace vgpu::client
