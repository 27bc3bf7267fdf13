// Waiting for the GPU; returns at once if nothing is outstanding. Outstanding work and reported errors are those of the stream's
// or event's device, not of the thread's current one.
#pragma once

#include "intercept/session/thread.h"

namespace vgpu::client {

// Until all work of `device` has ended. CUDA's result, which may be that of earlier posted work.
CUresult synchronizeDevice(Thread& thread, unsigned device);
// The same, but leaves the errors of posted work to the next call that reports them. If the result is the device's fault, none of
// its work runs any more.
CUresult awaitDevice(Thread& thread, unsigned device);
// Until no device uses host memory any more; the result is that of `device`, in whose context the memory was made.
CUresult synchronizeHostMemory(Thread& thread, unsigned device);
// Until all work of a stream (a resolved handle; 0: the legacy default stream) has ended.
CUresult synchronizeStream(Thread& thread, uint64_t stream);
// Until work that the stream is given now would begin: all that it has been given, and, of one that blocks, what the legacy default stream
// has, is over.
CUresult awaitTurn(Thread& thread, uint64_t stream);
// Until the worker has executed what the thread has posted to the device, whatever the GPU does. The error of a lost session.
CUresult awaitWorker(Thread& thread, unsigned device);
// The result of a launch into such a stream, which was posted with `result`: with CUDA_LAUNCH_BLOCKING, when its kernel has ended.
inline CUresult finishLaunch(Thread& thread, uint64_t stream, CUresult result) {
  return thread.session.launchesBlock && result == CUDA_SUCCESS ? synchronizeStream(thread, stream) : result;
}
// Whether the client knows, without asking, that nothing is outstanding in a stream (a resolved handle).
bool isKnownIdle(Thread& thread, uint64_t stream);
// The completion word of a stream (a resolved handle); nullptr if the stream has ended.
StreamCompletion* findCompletion(Thread& thread, uint64_t stream);
// Lets the GPU write into the completion word of a stream (a resolved handle) when it has executed all that the stream has been
// given. CUDA_ERROR_OUT_OF_MEMORY if no completion word is left.
CUresult fenceStream(Thread& thread, uint64_t stream, StreamFence& fence);
// Whether it has, or never will because its context or the session has ended.
bool isPast(const Session& session, const StreamFence& fence);
// Until the event's last record has happened. `event` is the entry of a live handle.
CUresult synchronizeEvent(Thread& thread, const EventState& event);
// CUDA_ERROR_NOT_READY if it has not.
CUresult queryEvent(Thread& thread, const EventState& event);

}  // namespace vgpu::client
