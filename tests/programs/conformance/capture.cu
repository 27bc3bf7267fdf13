// Stream capture: the modes, the calls that each forbids, joins, and every way to invalidate a capture.
#include <thread>

#include "conformance.h"

__global__ void add(int* value) { *value += 1; }

static cudaStream_t first, second, blocking;  // `first` and `second` are non-blocking
static int* values;
static cudaEvent_t event, outside;
static cudaGraph_t graph;

static void setUp() {
  CHECK(cudaMalloc(&values, 64));
  CHECK(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking));
  CHECK(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
  CHECK(cudaStreamCreate(&blocking));
  CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  CHECK(cudaEventCreateWithFlags(&outside, cudaEventDisableTiming));
  CHECK(cudaEventRecord(outside, second));
  add<<<1, 1>>>(values);
  CHECK(cudaDeviceSynchronize());
}

static void status(const char* which, cudaStream_t stream) {
  cudaStreamCaptureStatus status{};
  cudaError_t result = cudaStreamIsCapturing(stream, &status);
  std::printf("%s: %s: %s, status %d\n", currentSection, which, cudaGetErrorName(result), static_cast<int>(status));
}
#define STATUS(stream) status(#stream, stream)

static void end(cudaStream_t stream) {
  graph = nullptr;
  SAY(cudaStreamEndCapture(stream, &graph));
  VALUE(graph != nullptr);
  size_t nodes = 0;
  if (graph != nullptr && SAY(cudaGraphGetNodes(graph, nullptr, &nodes)) == cudaSuccess) VALUE(nodes);
}

static void callInMode(cudaStreamCaptureMode mode) {
  setUp();
  void* memory = nullptr;
  SAY(cudaStreamBeginCapture(first, mode));
  SAY(cudaStreamBeginCapture(first, mode));
  STATUS(first);
  SAY(cudaMemcpyAsync(values, values + 4, 4, cudaMemcpyDeviceToDevice, first));
  SAY(cudaMemsetAsync(values, 0, 4, first));
  SAY(cudaMalloc(&memory, 100));
  STATUS(first);
  SAY(cudaMemset(values, 0, 4));
  STATUS(first);
  SAY(cudaStreamSynchronize(second));
  STATUS(first);
  SAY(cudaStreamQuery(second));
  SAY(cudaEventQuery(outside));
  SAY(cudaEventSynchronize(outside));
  STATUS(first);
  end(first);
}
SECTION(globalMode) { callInMode(cudaStreamCaptureModeGlobal); }
SECTION(threadLocalMode) { callInMode(cudaStreamCaptureModeThreadLocal); }
SECTION(relaxedMode) { callInMode(cudaStreamCaptureModeRelaxed); }

SECTION(unknownMode) {
  setUp();
  SAY(cudaStreamBeginCapture(first, static_cast<cudaStreamCaptureMode>(7)));
  SAY(cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeGlobal));
  SAY(cudaStreamBeginCapture(cudaStreamLegacy, cudaStreamCaptureModeGlobal));
  SAY(cudaStreamBeginCapture(cudaStreamPerThread, cudaStreamCaptureModeGlobal));
  STATUS(cudaStreamPerThread);
  end(cudaStreamPerThread);
  SAY(cudaStreamEndCapture(first, &graph));
  SAY(cudaStreamEndCapture(nullptr, &graph));
  SAY(cudaStreamIsCapturing(first, nullptr));
}

// Each unsafe call in a new capture.
template <typename Call>
static void inCapture(const char* what, Call&& call, cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal) {
  CHECK(cudaStreamBeginCapture(first, mode));
  std::printf("%s: %s = %s\n", currentSection, what, cudaGetErrorName(call()));
  cudaStreamCaptureStatus status{};
  CHECK(cudaStreamIsCapturing(first, &status));
  VALUE(status);
  cudaGraph_t made = nullptr;
  SAY(cudaStreamEndCapture(first, &made));
  cudaGetLastError();
}
#define IN_CAPTURE(call, ...) inCapture(#call, [&] { return call; }, ##__VA_ARGS__)
SECTION(unsafeCalls) {
  setUp();
  void* memory = nullptr;
  void* host = nullptr;
  int word = 0;
  cudaStream_t stream = nullptr;
  cudaEvent_t other = nullptr;
  size_t free = 0, total = 0;
  IN_CAPTURE(cudaMalloc(&memory, 64));
  IN_CAPTURE(cudaFree(nullptr));
  IN_CAPTURE(cudaMallocHost(&host, 64));
  IN_CAPTURE(cudaMemcpy(values, &word, 4, cudaMemcpyHostToDevice));
  IN_CAPTURE(cudaMemcpy(values, values + 1, 4, cudaMemcpyDeviceToDevice));
  IN_CAPTURE(cudaMemset(values, 0, 4));
  IN_CAPTURE(cudaMemGetInfo(&free, &total));
  IN_CAPTURE(cudaStreamCreate(&stream));
  IN_CAPTURE(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  IN_CAPTURE(cudaEventCreate(&other));
  IN_CAPTURE(cudaEventRecord(outside, second));
  IN_CAPTURE(cudaEventQuery(outside));
  IN_CAPTURE(cudaEventSynchronize(outside));
  IN_CAPTURE(cudaStreamQuery(second));
  IN_CAPTURE(cudaStreamSynchronize(second));
  IN_CAPTURE(cudaStreamQuery(first));
  IN_CAPTURE(cudaStreamSynchronize(first));
  IN_CAPTURE(cudaDeviceSynchronize());
  IN_CAPTURE(cudaStreamQuery(nullptr));
  IN_CAPTURE(cudaDeviceSynchronize(), cudaStreamCaptureModeRelaxed);
  IN_CAPTURE(cudaStreamSynchronize(nullptr), cudaStreamCaptureModeRelaxed);
  IN_CAPTURE(cudaMallocAsync(&memory, 64, first));
  IN_CAPTURE(cudaLaunchHostFunc(first, nullptr, nullptr));
  IN_CAPTURE(cudaLaunchHostFunc(first, [](void*) {}, nullptr));
  IN_CAPTURE(cudaStreamAddCallback(first, [](cudaStream_t, cudaError_t, void*) {}, nullptr, 0));
  IN_CAPTURE(cudaMemcpyAsync(values, &word, 4, cudaMemcpyHostToDevice, first));
  IN_CAPTURE(cudaEventRecordWithFlags(event, first, cudaEventRecordExternal));
  IN_CAPTURE(cudaStreamWaitEvent(first, outside, cudaEventWaitExternal));
  IN_CAPTURE(cudaStreamWaitEvent(first, outside, 0));
  IN_CAPTURE(cudaStreamAttachMemAsync(first, values, 0, cudaMemAttachSingle));
}

SECTION(launchesOfGraphs) {
  setUp();
  CHECK(cudaStreamBeginCapture(first, cudaStreamCaptureModeRelaxed));
  add<<<1, 1, 0, first>>>(values);
  cudaGraph_t made;
  cudaGraphExec_t executable;
  CHECK(cudaStreamEndCapture(first, &made));
  CHECK(cudaGraphInstantiate(&executable, made, 0));
  SAY(cudaStreamBeginCapture(first, cudaStreamCaptureModeRelaxed));
  SAY(cudaGraphLaunch(executable, second));
  STATUS(first);
  SAY(cudaGraphUpload(executable, first));
  STATUS(first);
  end(first);
  SAY(cudaStreamBeginCapture(first, cudaStreamCaptureModeRelaxed));
  SAY(cudaGraphLaunch(executable, first));
  STATUS(first);
  add<<<1, 1, 0, first>>>(values);
  SAY(cudaGetLastError());
  end(first);
}

SECTION(legacyStream) {
  setUp();
  SAY(cudaStreamBeginCapture(blocking, cudaStreamCaptureModeRelaxed));
  STATUS(nullptr);
  STATUS(blocking);
  add<<<1, 1>>>(values);
  SAY(cudaGetLastError());
  STATUS(blocking);
  STATUS(nullptr);
  SAY(cudaMemcpyAsync(values, values + 4, 4, cudaMemcpyDeviceToDevice, nullptr));
  SAY(cudaStreamQuery(nullptr));
  end(blocking);
  SAY(cudaStreamBeginCapture(blocking, cudaStreamCaptureModeRelaxed));
  SAY(cudaEventRecord(event, nullptr));
  STATUS(blocking);
  end(blocking);
  SAY(cudaStreamBeginCapture(first, cudaStreamCaptureModeRelaxed));
  add<<<1, 1>>>(values);
  SAY(cudaGetLastError());
  STATUS(first);
  end(first);
}

SECTION(joins) {
  setUp();
  SAY(cudaStreamBeginCapture(first, cudaStreamCaptureModeRelaxed));
  SAY(cudaEventRecord(event, first));
  SAY(cudaStreamWaitEvent(second, event, 0));
  STATUS(second);
  add<<<1, 1, 0, second>>>(values);
  SAY(cudaEventRecord(event, second));
  SAY(cudaStreamWaitEvent(first, event, 0));
  end(first);
  STATUS(second);
  // Not joined back.
  SAY(cudaStreamBeginCapture(first, cudaStreamCaptureModeRelaxed));
  SAY(cudaEventRecord(event, first));
  SAY(cudaStreamWaitEvent(second, event, 0));
  add<<<1, 1, 0, second>>>(values);
  end(first);
  STATUS(second);
  // Ended in the other stream.
  SAY(cudaStreamBeginCapture(first, cudaStreamCaptureModeRelaxed));
  SAY(cudaEventRecord(event, first));
  SAY(cudaStreamWaitEvent(second, event, 0));
  end(second);
  STATUS(first);
  STATUS(second);
  end(first);
}

SECTION(capturedEvents) {
  setUp();
  float milliseconds = 0;
  SAY(cudaStreamBeginCapture(first, cudaStreamCaptureModeRelaxed));
  SAY(cudaEventRecord(event, first));
  SAY(cudaEventQuery(event));
  STATUS(first);
  SAY(cudaEventSynchronize(event));
  SAY(cudaEventElapsedTime(&milliseconds, event, event));
  end(first);
  SAY(cudaStreamBeginCapture(first, cudaStreamCaptureModeRelaxed));
  SAY(cudaEventRecord(event, first));
  end(first);
  SAY(cudaStreamWaitEvent(second, event, 0));
  SAY(cudaEventQuery(event));
  SAY(cudaEventSynchronize(event));
  SAY(cudaEventRecord(event, second));
  SAY(cudaEventSynchronize(event));
}

SECTION(twoCaptures) {
  setUp();
  SAY(cudaStreamBeginCapture(first, cudaStreamCaptureModeRelaxed));
  SAY(cudaStreamBeginCapture(second, cudaStreamCaptureModeRelaxed));
  SAY(cudaEventRecord(event, first));
  SAY(cudaStreamWaitEvent(second, event, 0));
  STATUS(first);
  STATUS(second);
  end(first);
  end(second);
}

SECTION(otherThreads) {
  setUp();
  for (auto mode : {cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal, cudaStreamCaptureModeRelaxed}) {
    VALUE(mode);
    SAY(cudaStreamBeginCapture(first, mode));
    std::thread([] {
      void* memory = nullptr;
      STATUS(first);
      SAY(cudaMalloc(&memory, 64));
      STATUS(first);
      cudaStreamCaptureMode relaxed = cudaStreamCaptureModeRelaxed;
      SAY(cudaThreadExchangeStreamCaptureMode(&relaxed));
      VALUE(relaxed);
      SAY(cudaMalloc(&memory, 64));
      SAY(cudaThreadExchangeStreamCaptureMode(&relaxed));
      cudaGraph_t none = nullptr;
      SAY(cudaStreamEndCapture(first, &none));
      VALUE(none != nullptr);
    }).join();
    STATUS(first);
    graph = nullptr;
    SAY(cudaStreamEndCapture(first, &graph));
  }
  auto unknown = static_cast<cudaStreamCaptureMode>(9);
  SAY(cudaThreadExchangeStreamCaptureMode(&unknown));
}

SECTION(information) {
  setUp();
  cudaStreamCaptureStatus status{};
  unsigned long long id = 7;
  cudaGraph_t current = nullptr;
  const cudaGraphNode_t* tail = nullptr;
  size_t tails = 9;
  SAY(cudaStreamGetCaptureInfo(first, &status, &id, &current, &tail, nullptr, &tails));
  VALUE(status);
  SAY(cudaStreamBeginCapture(first, cudaStreamCaptureModeRelaxed));
  SAY(cudaStreamGetCaptureInfo(first, &status, &id, &current, &tail, nullptr, &tails));
  VALUE(status);
  VALUE(tails);
  add<<<1, 1, 0, first>>>(values);
  SAY(cudaStreamGetCaptureInfo(first, &status, &id, &current, &tail, nullptr, &tails));
  VALUE(tails);
  cudaGraphNodeType type{};
  SAY(cudaGraphNodeGetType(tail[0], &type));
  VALUE(type);
  cudaGraphNode_t last = tail[0], empty = nullptr;
  SAY(cudaGraphAddEmptyNode(&empty, current, &last, 1));
  SAY(cudaStreamUpdateCaptureDependencies(first, &empty, nullptr, 1, cudaStreamSetCaptureDependencies));
  SAY(cudaStreamUpdateCaptureDependencies(first, &last, nullptr, 1, cudaStreamAddCaptureDependencies));
  SAY(cudaStreamGetCaptureInfo(first, &status, &id, &current, &tail, nullptr, &tails));
  VALUE(tails);
  SAY(cudaStreamUpdateCaptureDependencies(second, &empty, nullptr, 1, cudaStreamSetCaptureDependencies));
  SAY(cudaStreamUpdateCaptureDependencies(first, &empty, nullptr, 1, 77));
  end(first);
}
