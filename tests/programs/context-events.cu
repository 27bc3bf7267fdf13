// Events of whole contexts: an event recorded behind all streams of a context (cuCtxRecordEvent), and one that all of its streams wait for,
// including streams made later (cuCtxWaitEvent). Also: in which context's streams an event can be recorded.
#include "exported-entry.h"

#include <thread>

__global__ void add(unsigned* to, unsigned value) { *to += value; }
__global__ void copyWord(unsigned* to, const unsigned* from) { *to = *from; }

namespace {

constexpr unsigned held = 4;

CUcontext context = nullptr;
CUstream stream = nullptr;  // without work

// Streams of several kinds, each waiting for a word of host memory.
struct Held {
  Held() {
    CHECK(cudaMallocHost(&gate, sizeof *gate));
    CHECK(cudaMallocHost(&counters, held * sizeof *counters));
    *gate = 0;
    std::fill(counters, counters + held, 0u);
    CHECK(cudaStreamCreateWithFlags(&streams[0], cudaStreamNonBlocking));
    CHECK(cudaStreamCreate(&streams[1]));
    streams[2] = cudaStreamPerThread;
    streams[3] = cudaStreamLegacy;
  }
  ~Held() {
    for (int i : {0, 1}) CHECK(cudaStreamDestroy(streams[i]));
    CHECK(cudaFreeHost(gate));
    CHECK(cudaFreeHost(counters));
  }
  CUdeviceptr gateAddress() const { return reinterpret_cast<CUdeviceptr>(gate); }
  // The legacy stream waits for the blocking stream, and is not held itself.
  bool hold() {
    bool ok = true;
    for (unsigned i = 0; i < 3; ++i) ok &= WORKS(cuStreamWaitValue32_v2, streams[i], gateAddress(), 1, CU_STREAM_WAIT_VALUE_GEQ);
    for (unsigned i = 0; i < held; ++i) add<<<1, 1, 0, streams[i]>>>(counters + i, 1);
    CHECK(cudaGetLastError());
    return ok;
  }
  void open() { *const_cast<volatile unsigned*>(gate) = 1; }

  unsigned *gate = nullptr, *counters = nullptr;
  cudaStream_t streams[held]{};
};

// The event is behind the streams' work at the time of the record, and not behind later work.
bool recorded() {
  Held work;
  CUevent event = nullptr;
  bool ok = WORKS(cuEventCreate, &event, CU_EVENT_DEFAULT) && WORKS(cuCtxRecordEvent, context, event);
  ok &= WORKS(cuEventSynchronize, event);  // nothing to wait for
  ok &= work.hold() && WORKS(cuCtxRecordEvent, context, event);
  ok &= GIVES(CUDA_ERROR_NOT_READY, cuEventQuery, event);
  work.open();
  ok &= WORKS(cuEventSynchronize, event);
  for (unsigned i = 0; i < held; ++i) ok &= EXPECT(work.counters[i] == 1);
  return ok && WORKS(cuEventDestroy_v2, event);
}

// All streams wait for the event, including one that is made meanwhile.
bool awaited() {
  Held work;
  CUevent event = nullptr;
  cudaStream_t before = nullptr, later = nullptr;
  unsigned *source = nullptr, *seen = nullptr;
  CHECK(cudaMallocHost(&source, sizeof *source));
  CHECK(cudaMallocHost(&seen, 3 * sizeof *seen));
  CHECK(cudaStreamCreateWithFlags(&before, cudaStreamNonBlocking));
  *source = 0;
  std::fill(seen, seen + 3, 99u);
  loadKernel(copyWord);
  bool ok = WORKS(cuEventCreate, &event, CU_EVENT_DISABLE_TIMING) && WORKS(cuCtxWaitEvent, context, event);  // never recorded
  ok &= WORKS(cuStreamWaitValue32_v2, work.streams[0], work.gateAddress(), 1, CU_STREAM_WAIT_VALUE_GEQ);
  add<<<1, 1, 0, work.streams[0]>>>(source, 5);
  ok &= WORKS(cuEventRecord, event, work.streams[0]) && WORKS(cuCtxWaitEvent, context, event);
  copyWord<<<1, 1, 0, before>>>(seen, source);
  CHECK(cudaStreamCreateWithFlags(&later, cudaStreamNonBlocking));
  copyWord<<<1, 1, 0, later>>>(seen + 1, source);
  std::thread other([&] { copyWord<<<1, 1, 0, cudaStreamPerThread>>>(seen + 2, source); });
  other.join();
  ok &= EXPECT(cudaStreamQuery(before) == cudaErrorNotReady) & EXPECT(cudaStreamQuery(later) == cudaErrorNotReady);
  work.open();
  CHECK(cudaDeviceSynchronize());
  for (int i : {0, 1, 2}) ok &= EXPECT(seen[i] == 5);
  for (auto each : {before, later}) CHECK(cudaStreamDestroy(each));
  CHECK(cudaFreeHost(source));
  CHECK(cudaFreeHost(seen));
  return ok && WORKS(cuEventDestroy_v2, event);
}

// Events of another context, and capturing streams.
bool refused() {
  CUcontext other = nullptr, primary = context;
  CUevent event = nullptr, ofOther = nullptr;
  CUgraph graph = nullptr;
  bool ok = WORKS(cuEventCreate, &event, CU_EVENT_DEFAULT) && WORKS(cuCtxCreate_v2, &other, 0, 0);
  ok &= WORKS(cuEventCreate, &ofOther, CU_EVENT_DEFAULT) && WORKS(cuCtxSetCurrent, primary);
  ok &= GIVES(CUDA_ERROR_INVALID_HANDLE, cuCtxRecordEvent, primary, ofOther);
  ok &= WORKS(cuCtxRecordEvent, other, ofOther) && WORKS(cuCtxWaitEvent, primary, ofOther);
  ok &= WORKS(cuStreamBeginCapture_v2, stream, CU_STREAM_CAPTURE_MODE_RELAXED);
  ok &= GIVES(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuCtxRecordEvent, primary, event);
  ok &= GIVES(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture, stream, &graph);
  ok &= WORKS(cuStreamBeginCapture_v2, stream, CU_STREAM_CAPTURE_MODE_RELAXED);
  ok &= GIVES(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuCtxWaitEvent, primary, event);
  ok &= GIVES(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture, stream, &graph);
  ok &= WORKS(cuCtxDestroy_v2, other) && WORKS(cuCtxSetCurrent, primary);
  return ok && WORKS(cuEventDestroy_v2, event);
}

// An event can only be recorded in streams of its own context, whichever of the device's contexts is current; any stream can wait for it.
bool recordedInOwnContext() {
  constexpr auto refused = CUDA_ERROR_INVALID_HANDLE;
  CUcontext other = nullptr, primary = context;
  CUevent event = nullptr, ofOther = nullptr;
  CUstream inOther = nullptr;
  float passed = 0;
  bool ok = WORKS(cuEventCreate, &event, CU_EVENT_DEFAULT) && WORKS(cuCtxCreate_v2, &other, 0, 0);
  ok &= WORKS(cuEventCreate, &ofOther, CU_EVENT_DEFAULT) && WORKS(cuStreamCreate, &inOther, CU_STREAM_DEFAULT);
  ok &= GIVES(refused, cuEventRecord, event, inOther) & GIVES(refused, cuEventRecord, event, nullptr) &
        GIVES(refused, cuEventRecord, event, CU_STREAM_PER_THREAD) & WORKS(cuEventRecord, event, stream) &
        GIVES(refused, cuEventRecord, ofOther, stream) & WORKS(cuEventRecord, ofOther, nullptr) &
        WORKS(cuEventRecord, ofOther, CU_STREAM_PER_THREAD) & WORKS(cuEventRecord, ofOther, inOther);
  ok &= WORKS(cuStreamWaitEvent, stream, ofOther, 0) & WORKS(cuStreamWaitEvent, inOther, event, 0);
  ok &= WORKS(cuEventSynchronize, event) & WORKS(cuEventSynchronize, ofOther);
  ok &= GIVES(refused, cuEventElapsedTime, &passed, event, ofOther) & WORKS(cuEventElapsedTime, &passed, event, event);
  ok &= WORKS(cuCtxSetCurrent, primary) & GIVES(refused, cuEventRecord, ofOther, nullptr) & WORKS(cuEventRecord, event, nullptr);
  return ok && WORKS(cuCtxDestroy_v2, other) && WORKS(cuCtxSetCurrent, primary) && WORKS(cuEventDestroy_v2, event);
}

}  // namespace

int main() {
  CHECK(cudaFree(nullptr));
  loadKernel(add);
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  bool ok = WORKS(cuCtxGetCurrent, &context) && recorded() & awaited();
  pausePoint();
  ok &= recorded() & awaited() & refused() & recordedInOwnContext();
  CHECK(cudaStreamDestroy(stream));
  return verdict("context-events", ok);
}
