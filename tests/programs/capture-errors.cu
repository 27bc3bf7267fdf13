// Calls that are forbidden while a stream captures: each returns CUDA's error at that call, and invalidates the capture or leaves it, as
// CUDA specifies; afterwards the streams work as before.
#include <thread>

#include "program.h"

__global__ void set(int* value, int to) { *value = to; }

cudaStream_t blocking, other, free1;  // free1 is non-blocking
int* value;

void begin(cudaStream_t stream, cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal) {
  CHECK(cudaStreamBeginCapture(stream, mode));
  set<<<1, 1, 0, stream>>>(value, 1);
}

// Ends the capture; requires that error and no graph.
bool ends(cudaStream_t stream, cudaError_t want) {
  cudaGraph_t graph = reinterpret_cast<cudaGraph_t>(1);
  cudaError_t got = cudaStreamEndCapture(stream, &graph);
  cudaGetLastError();
  if (got == cudaSuccess) CHECK(cudaGraphDestroy(graph));
  return EXPECT_ERROR(got, want) & EXPECT(want == cudaSuccess || graph == nullptr);
}
bool isStatus(cudaStream_t stream, cudaStreamCaptureStatus want) {
  cudaStreamCaptureStatus status;
  CHECK(cudaStreamIsCapturing(stream, &status));
  return EXPECT(status == want);
}

bool ofStreams() {
  bool ok = true;
  cudaGraph_t graph;
  // Nothing to begin or to end.
  ok &= EXPECT_ERROR(cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeGlobal), cudaErrorStreamCaptureUnsupported);
  ok &= EXPECT_ERROR(cudaStreamEndCapture(blocking, &graph), cudaErrorIllegalState);
  begin(blocking);
  ok &= EXPECT_ERROR(cudaStreamBeginCapture(blocking, cudaStreamCaptureModeGlobal), cudaErrorIllegalState);
  ok &= ends(blocking, cudaSuccess);

  // Waiting for a capturing stream.
  begin(free1);
  ok &= EXPECT_ERROR(cudaStreamSynchronize(free1), cudaErrorStreamCaptureUnsupported);
  ok &= isStatus(free1, cudaStreamCaptureStatusInvalidated);
  set<<<1, 1, 0, free1>>>(value, 2);
  ok &= EXPECT_ERROR(cudaGetLastError(), cudaErrorStreamCaptureInvalidated);
  ok &= ends(free1, cudaErrorStreamCaptureInvalidated);
  begin(free1);
  ok &= EXPECT_ERROR(cudaStreamQuery(free1), cudaErrorStreamCaptureUnsupported);
  ok &= ends(free1, cudaErrorStreamCaptureInvalidated);

  // The legacy stream synchronizes with blocking streams, not with the others.
  begin(blocking);
  cudaStreamCaptureStatus status;
  ok &= EXPECT_ERROR(cudaStreamIsCapturing(nullptr, &status), cudaErrorStreamCaptureImplicit);
  ok &= isStatus(blocking, cudaStreamCaptureStatusActive);
  set<<<1, 1>>>(value, 2);
  ok &= EXPECT_ERROR(cudaGetLastError(), cudaErrorStreamCaptureImplicit);
  ok &= ends(blocking, cudaErrorStreamCaptureInvalidated);
  begin(free1, cudaStreamCaptureModeRelaxed);
  set<<<1, 1>>>(value, 3);
  ok &= EXPECT_ERROR(cudaGetLastError(), cudaSuccess);
  ok &= ends(free1, cudaSuccess);
  return ok;
}

bool ofModes() {
  bool ok = true;
  int* memory = nullptr;
  begin(free1);
  ok &= EXPECT_ERROR(cudaMalloc(&memory, 16), cudaErrorStreamCaptureUnsupported);
  ok &= ends(free1, cudaErrorStreamCaptureInvalidated);
  begin(free1, cudaStreamCaptureModeRelaxed);
  ok &= EXPECT_ERROR(cudaMalloc(&memory, 16), cudaSuccess);
  ok &= ends(free1, cudaSuccess);
  begin(free1);
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  CHECK(cudaThreadExchangeStreamCaptureMode(&mode));
  ok &= EXPECT(mode == cudaStreamCaptureModeGlobal);
  ok &= EXPECT_ERROR(cudaFree(memory), cudaSuccess);
  CHECK(cudaThreadExchangeStreamCaptureMode(&mode));
  ok &= ends(free1, cudaSuccess);

  // On another thread: a global capture forbids unsafe calls there, a thread-local one does not. EndCapture on the wrong thread ends the
  // capture, and no thread gets the graph.
  auto elsewhere = [&](cudaStreamCaptureMode how, cudaError_t want, cudaError_t end) {
    begin(free1, how);
    std::thread([&] {
      int* own = nullptr;
      cudaGraph_t graph;
      ok &= EXPECT_ERROR(cudaMalloc(&own, 16), want);
      if (want == cudaSuccess) ok &= EXPECT_ERROR(cudaFree(own), cudaSuccess);
      if (want == cudaSuccess) ok &= EXPECT_ERROR(cudaStreamEndCapture(free1, &graph), cudaErrorStreamCaptureWrongThread);
    }).join();
    ok &= ends(free1, end);
  };
  elsewhere(cudaStreamCaptureModeThreadLocal, cudaSuccess, cudaErrorIllegalState);
  elsewhere(cudaStreamCaptureModeGlobal, cudaErrorStreamCaptureUnsupported, cudaErrorStreamCaptureInvalidated);
  return ok;
}

bool ofJoins() {
  bool ok = true;
  cudaGraph_t graph;
  cudaEvent_t event, outside;
  CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  CHECK(cudaEventCreateWithFlags(&outside, cudaEventDisableTiming));
  CHECK(cudaEventRecord(outside, other));

  // A stream that has joined the capture and is not joined back.
  begin(free1);
  CHECK(cudaEventRecord(event, free1));
  CHECK(cudaStreamWaitEvent(other, event, 0));
  ok &= isStatus(other, cudaStreamCaptureStatusActive);
  set<<<1, 1, 0, other>>>(value, 1);
  ok &= ends(free1, cudaErrorStreamCaptureUnjoined);
  ok &= isStatus(other, cudaStreamCaptureStatusNone);

  // Ended in a stream that has joined.
  begin(free1);
  CHECK(cudaEventRecord(event, free1));
  CHECK(cudaStreamWaitEvent(other, event, 0));
  ok &= EXPECT_ERROR(cudaStreamEndCapture(other, &graph), cudaErrorStreamCaptureUnmatched);
  ok &= ends(free1, cudaErrorStreamCaptureInvalidated);

  // A dependency on work outside of the capture.
  begin(free1);
  ok &= EXPECT_ERROR(cudaStreamWaitEvent(free1, outside, 0), cudaErrorStreamCaptureIsolation);
  ok &= ends(free1, cudaErrorStreamCaptureInvalidated);

  // Two captures that depend on each other.
  begin(free1);
  begin(blocking);
  CHECK(cudaEventRecord(event, free1));
  ok &= EXPECT_ERROR(cudaStreamWaitEvent(blocking, event, 0), cudaErrorStreamCaptureMerge);
  ok &= ends(blocking, cudaErrorStreamCaptureInvalidated);
  ok &= ends(free1, cudaErrorStreamCaptureInvalidated);

  // An event that was recorded in a capture cannot be queried.
  begin(free1);
  CHECK(cudaEventRecord(event, free1));
  ok &= EXPECT_ERROR(cudaEventQuery(event), cudaErrorCapturedEvent);
  ok &= ends(free1, cudaErrorStreamCaptureInvalidated);
  CHECK(cudaEventRecord(event, free1));
  ok &= EXPECT_ERROR(cudaEventSynchronize(event), cudaSuccess);
  cudaGetLastError();
  CHECK(cudaEventDestroy(event));
  CHECK(cudaEventDestroy(outside));
  return ok;
}

// The user objects of an invalidated capture's graph are released with it; a destructor may wait for another thread that captures.
bool ofObjects() {
  struct Meeting {
    std::atomic<bool> reached{false}, passed{false};
  } meeting;
  auto destroy = [](void* data) {
    auto& meeting = *static_cast<Meeting*>(data);
    meeting.reached = true;
    while (!meeting.passed) usleep(100);
  };
  std::thread elsewhere([&] {
    while (!meeting.reached) usleep(100);
    begin(other, cudaStreamCaptureModeRelaxed);
    ends(other, cudaSuccess);
    meeting.passed = true;
  });
  bool ok = true;
  for (bool isDestroyed : {false, true}) {
    cudaStream_t stream;
    cudaUserObject_t object;
    cudaStreamCaptureStatus status;
    cudaGraph_t graph;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(cudaUserObjectCreate(&object, &meeting, destroy, 1, cudaUserObjectNoDestructorSync));
    begin(stream);
    CHECK(cudaStreamGetCaptureInfo(stream, &status, nullptr, &graph));
    CHECK(cudaGraphRetainUserObject(graph, object, 1, cudaGraphUserObjectMove));
    ok &= EXPECT_ERROR(cudaStreamSynchronize(stream), cudaErrorStreamCaptureUnsupported);
    cudaGetLastError();
    if (!isDestroyed) ok &= ends(stream, cudaErrorStreamCaptureInvalidated);
    CHECK(cudaStreamDestroy(stream));
  }
  elsewhere.join();
  return ok;
}

int main() {
  alarm(60);
  CHECK(cudaStreamCreate(&blocking));
  CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
  CHECK(cudaStreamCreateWithFlags(&free1, cudaStreamNonBlocking));
  CHECK(cudaMalloc(&value, sizeof(int)));
  loadKernel(set);
  bool ok = ofStreams();
  ok &= ofModes();
  ok &= ofJoins();
  ok &= ofObjects();
  // Everything works as before.
  set<<<1, 1, 0, blocking>>>(value, 42);
  int got = 0;
  CHECK(cudaMemcpy(&got, value, sizeof got, cudaMemcpyDeviceToHost));
  ok &= EXPECT(got == 42);
  return verdict("capture-errors", ok);
}
