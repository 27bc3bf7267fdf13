#include "intercept/driver/context-reset.h"

#include "intercept/session/entry.h"

namespace vgpu {

namespace {

// Makes `device` current, with the right to call into a context that has ended.
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

// Of `context`; 0: of all of the device. The object list learns of each object's end, whatever the driver says of it.
CUresult dropObjects(Thread& thread, unsigned device, uint64_t context) {
  Session& session = thread.session;
  CUresult first = CUDA_SUCCESS;
  auto keep = [&](CUresult result) {
    if (first == CUDA_SUCCESS) first = result;
  };
  auto each = [&](api::Kind kind, auto&& destroy) {
    for (uint64_t handle : session.handles.live(kind, device, context)) keep(destroy(handle));
  };
  each(api::Kind::STREAM, [](uint64_t handle) { return cuStreamDestroy_v2(fromWire<CUstream>(handle)); });
  each(api::Kind::EVENT, [](uint64_t handle) { return cuEventDestroy_v2(fromWire<CUevent>(handle)); });
  each(api::Kind::MODULE, [](uint64_t handle) { return cuModuleUnload(fromWire<CUmodule>(handle)); });
  for (uint64_t value : session.textures.values(device, ObjectKind::texture, context)) keep(cuTexObjectDestroy(value));
  for (uint64_t value : session.textures.values(device, ObjectKind::surface, context)) keep(cuSurfObjectDestroy(value));
  each(api::Kind::ARRAY, [](uint64_t handle) { return cuArrayDestroy(fromWire<CUarray>(handle)); });
  each(api::Kind::MIPMAPPED_ARRAY, [](uint64_t handle) { return cuMipmappedArrayDestroy(fromWire<CUmipmappedArray>(handle)); });
  keep(session.memory.freeAll(thread, device, context));
  return first;
}

// A new context in the worker. What the old one was to do is answered with its fault from here on, and what it had
// borrowed comes back.
CUresult renewContext(Thread& thread, unsigned device, CUresult fault) {
  Session& session = thread.session;
  uint64_t stamp;
  CUresult result;
  {
    Call<api::Cuda::ContextResetParams> frame(thread, api::Method::contextReset);
    frame->setContext(device);
    stamp = frame.stamp();
    session.resets[device].fault.store(fault, std::memory_order_relaxed);
    session.resets[device].stamp.store(stamp, std::memory_order_release);
    result = frame.call();
  }
  // What the device is to the worker's process is over; to another process it is not.
  if (result != CUDA_SUCCESS && (session.lost.load() || !session.renewWorker())) return result;
  session.takeError(device);  // told by the fault
  raise(session.progress[device].knownDone, stamp);
  session.slabs.reclaim(device, stamp);
  session.hostFunctions.drop(device, stamp);
  session.eventLines.contextEnded(device, stamp);
  session.memory.trim(thread, device, 0);
  return CUDA_SUCCESS;
}

}  // namespace

CUresult endContext(Thread& thread, uint64_t context) {
  if (!thread.session.contexts.end(context)) return CUDA_SUCCESS;  // somebody else has ended it
  unsigned device = handleDevice(context);
  TakingDown current(thread, device);
  CUresult before = synchronizeDevice(thread, device);
  if (CUresult fault = thread.session.fault(device)) {
    dropObjects(thread, device, 0);
    return renewContext(thread, device, fault);
  }
  CUresult dropped = dropObjects(thread, device, context);
  return before != CUDA_SUCCESS ? before : dropped;
}

}  // namespace vgpu
