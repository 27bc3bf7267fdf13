// Waiting for the GPU; returns immediately if nothing is outstanding. Outstanding work and reported errors are those of the stream's or
// event's device, not of the thread's current device.
#pragma once

#include "intercept/session/thread.h"

namespace vgpu::client {

// Waits for all work of `device`. CUDA's result, which may be an error of earlier posted work.
CUresult synchronizeDevice(Thread& thread, unsigned device);
// As synchronizeDevice(), but leaves the errors of posted work to the next call that reports them. If the result is the device's fault,
// none of its work runs any more.
CUresult awaitDevice(Thread& thread, unsigned device);
// Waits until no device uses host memory; the result is that of `device`, in whose context the memory was made.
CUresult synchronizeHostMemory(Thread& thread, unsigned device);
// Waits for all work of a stream (a resolved handle; 0: the legacy default stream).
CUresult synchronizeStream(Thread& thread, uint64_t stream);
// Waits until new work in the stream could start: until the stream's own work has ended and, unless the stream is non-blocking, the work of
// the legacy default stream too.
CUresult awaitTurn(Thread& thread, uint64_t stream);
// Waits until the worker has executed all frames posted to the device, whatever the GPU does. The error of a lost session.
CUresult awaitWorker(Thread& thread, unsigned device);
// The result of a launch that was posted with `result`; with CUDA_LAUNCH_BLOCKING, after its kernel has ended.
inline CUresult finishLaunch(Thread& thread, uint64_t stream, CUresult result) {
  return thread.session.launchesBlock && result == CUDA_SUCCESS ? synchronizeStream(thread, stream) : result;
}
// Whether the client knows without a round trip that nothing is outstanding in a stream (a resolved handle).
bool isKnownIdle(Thread& thread, uint64_t stream);
// The completion word of a stream (a resolved handle); nullptr if the stream has ended.
StreamCompletion* findCompletion(Thread& thread, uint64_t stream);
// Makes the GPU write into the completion word of a stream (a resolved handle) when it has executed all work posted to the stream so far.
// CUDA_ERROR_OUT_OF_MEMORY if no completion word is left.
CUresult fenceStream(Thread& thread, uint64_t stream, StreamFence& fence);
// Whether the GPU has passed the fence, or never will because its context or the session has ended.
bool isPast(const Session& session, const StreamFence& fence);
// Waits until the event's last record has completed. `event` is the entry of a live handle.
CUresult synchronizeEvent(Thread& thread, const EventState& event);
// CUDA_ERROR_NOT_READY if it has not completed.
CUresult queryEvent(Thread& thread, const EventState& event);

}  // namespace vgpu::client
