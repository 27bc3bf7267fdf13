// Streams captured into graphs: one stream, several that fork and join by events, copies of pageable memory, host functions, a graph
// launched into a capture, a capture into an existing graph; launched repeatedly, also after a suspend in the middle of a capture.
#include "program.h"

constexpr int count = 1 << 12, block = 256, blocks = count / block;

__global__ void addTo(int* values, int amount) { values[blockIdx.x * block + threadIdx.x] += amount; }
__global__ void scale(int* values, int factor) { values[blockIdx.x * block + threadIdx.x] *= factor; }
__global__ void combine(int* out, const int* a, const int* b) {
  const int i = blockIdx.x * block + threadIdx.x;
  out[i] = a[i] + 10 * b[i];
}

struct Stream {
  Stream() { CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking)); }
  ~Stream() { CHECK(cudaStreamDestroy(stream)); }
  operator cudaStream_t() const { return stream; }
  cudaStream_t stream;
};
struct Event {
  Event() { CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming)); }
  ~Event() { CHECK(cudaEventDestroy(event)); }
  operator cudaEvent_t() const { return event; }
  cudaEvent_t event;
};

cudaGraphExec_t instantiate(cudaGraph_t graph) {
  cudaGraphExec_t exec;
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  CHECK(cudaGraphDestroy(graph));
  return exec;
}

size_t nodesOf(cudaGraph_t graph) {
  size_t nodes = 0;
  CHECK(cudaGraphGetNodes(graph, nullptr, &nodes));
  return nodes;
}

bool isCapturing(cudaStream_t stream, cudaStreamCaptureStatus want) {
  cudaStreamCaptureStatus status;
  CHECK(cudaStreamIsCapturing(stream, &status));
  return status == want;
}

void count1(void* data) { ++*static_cast<int*>(data); }

// One stream: fills, copies, launches, a host function; nothing runs before the graph is launched.
bool straight() {
  Stream stream;
  std::vector<int> input(count), output(count, -1);
  DeviceArray<int> values(count), other(std::vector<int>(count, 4));
  int called = 0;
  bool ok = EXPECT(isCapturing(stream, cudaStreamCaptureStatusNone));
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  ok &= EXPECT(isCapturing(stream, cudaStreamCaptureStatusActive));
  CHECK(cudaMemcpyAsync(values, input.data(), count * sizeof(int), cudaMemcpyHostToDevice, stream));
  addTo<<<blocks, block, 0, stream>>>(values, 1);
  CHECK(cudaMemsetAsync(other, 0, count * sizeof(int) / 2, stream));
  scale<<<blocks, block, 0, stream>>>(values, 2);

  pausePoint();

  combine<<<blocks, block, 0, stream>>>(values, values, other);
  CHECK(cudaLaunchHostFunc(stream, count1, &called));
  CHECK(cudaMemcpyAsync(output.data(), values, count * sizeof(int), cudaMemcpyDeviceToHost, stream));
  cudaGraph_t graph;
  CHECK(cudaStreamEndCapture(stream, &graph));
  ok &= EXPECT(nodesOf(graph) == 7) & EXPECT(called == 0) & EXPECT(output[0] == -1);
  ok &= EXPECT(isCapturing(stream, cudaStreamCaptureStatusNone));
  cudaGraphExec_t exec = instantiate(graph);
  for (int round = 1; round <= 3; ++round) {
    for (int i = 0; i < count; ++i) input[i] = i * round;
    CHECK(cudaGraphLaunch(exec, stream));
    CHECK(cudaStreamSynchronize(stream));
    std::vector<int> want(count);
    for (int i = 0; i < count; ++i) want[i] = 2 * (i * round + 1) + (i < count / 2 ? 0 : 40);
    ok &= same("straight", output, want) & EXPECT(called == round);
  }
  CHECK(cudaGraphExecDestroy(exec));
  return ok;
}

// A second stream joins the capture, works concurrently, and is joined back.
cudaGraph_t fork(Stream& first, Stream& second, int* a, int* b, int* out, int amount) {
  Event begun, done;
  CHECK(cudaStreamBeginCapture(first, cudaStreamCaptureModeThreadLocal));
  addTo<<<blocks, block, 0, first>>>(a, amount);
  CHECK(cudaEventRecord(begun, first));
  CHECK(cudaStreamWaitEvent(second, begun, 0));
  addTo<<<blocks, block, 0, second>>>(b, amount);
  scale<<<blocks, block, 0, second>>>(b, 3);
  scale<<<blocks, block, 0, first>>>(a, 2);
  CHECK(cudaEventRecord(done, second));
  CHECK(cudaStreamWaitEvent(first, done, 0));
  combine<<<blocks, block, 0, first>>>(out, a, b);
  cudaGraph_t graph;
  CHECK(cudaStreamEndCapture(first, &graph));
  return graph;
}

bool forked() {
  Stream first, second;
  DeviceArray<int> a(std::vector<int>(count, 1)), b(std::vector<int>(count, 2)), out(count);
  cudaGraph_t graph = fork(first, second, a, b, out, 5);
  size_t edges = 0, roots = 0;
  CHECK(cudaGraphGetEdges(graph, nullptr, nullptr, nullptr, &edges));
  CHECK(cudaGraphGetRootNodes(graph, nullptr, &roots));
  bool ok = EXPECT(nodesOf(graph) == 5) & EXPECT(edges == 5) & EXPECT(roots == 1);
  cudaGraphExec_t exec = instantiate(graph);
  int wantA = 1, wantB = 2;
  auto launch = [&](int amount) {
    CHECK(cudaGraphLaunch(exec, second));
    CHECK(cudaStreamSynchronize(second));
    wantA = (wantA + amount) * 2;
    wantB = (wantB + amount) * 3;
    return same("forked", out.download(), std::vector<int>(count, wantA + 10 * wantB));
  };
  ok &= launch(5);
  // The same work is captured again with other numbers, and updates the executable graph.
  cudaGraph_t again = fork(first, second, a, b, out, 6);
  cudaGraphExecUpdateResultInfo info;
  CHECK(cudaGraphExecUpdate(exec, again, &info));
  ok &= launch(6);
  pausePoint();
  ok &= launch(6);
  CHECK(cudaGraphExecDestroy(exec));
  CHECK(cudaGraphDestroy(again));
  return ok;
}

// A capture adds nodes to an existing graph, behind a child graph, and the program changes the dependencies.
bool nested() {
  Stream stream;
  DeviceArray<int> values(std::vector<int>(count, 1));
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  addTo<<<blocks, block, 0, stream>>>(values, 1);
  scale<<<blocks, block, 0, stream>>>(values, 2);
  cudaGraph_t inner, outer;
  CHECK(cudaStreamEndCapture(stream, &inner));
  cudaGraphExec_t exec;
  CHECK(cudaGraphInstantiate(&exec, inner, 0));

  cudaGraphNode_t first, child;
  CHECK(cudaGraphCreate(&outer, 0));
  CHECK(cudaGraphAddEmptyNode(&first, outer, nullptr, 0));
  CHECK(cudaGraphAddChildGraphNode(&child, outer, &first, 1, inner));
  CHECK(cudaStreamBeginCaptureToGraph(stream, outer, &child, nullptr, 1, cudaStreamCaptureModeRelaxed));
  addTo<<<blocks, block, 0, stream>>>(values, 100);
  cudaStreamCaptureStatus status;
  unsigned long long id = 0;
  cudaGraph_t current;
  const cudaGraphNode_t* tail;
  size_t tails = 0;
  CHECK(cudaStreamGetCaptureInfo(stream, &status, &id, &current, &tail, nullptr, &tails));
  bool ok = EXPECT(status == cudaStreamCaptureStatusActive) & EXPECT(id != 0) & EXPECT(current == outer) & EXPECT(tails == 1);
  cudaGraphNode_t last = tail[0], join;
  CHECK(cudaGraphAddEmptyNode(&join, outer, &last, 1));
  CHECK(cudaStreamUpdateCaptureDependencies(stream, &join, nullptr, 1, cudaStreamSetCaptureDependencies));
  scale<<<blocks, block, 0, stream>>>(values, 3);
  cudaGraph_t ended;
  CHECK(cudaStreamEndCapture(stream, &ended));
  ok &= EXPECT(ended == outer) & EXPECT(nodesOf(outer) == 5);
  cudaGraphExec_t whole = instantiate(outer);
  CHECK(cudaGraphLaunch(whole, stream));
  CHECK(cudaGraphLaunch(exec, stream));
  CHECK(cudaStreamSynchronize(stream));
  ok &= same("nested", values.download(), std::vector<int>(count, 2 * ((2 * 2 + 100) * 3 + 1)));
  CHECK(cudaGraphExecDestroy(whole));
  CHECK(cudaGraphExecDestroy(exec));
  return ok;
}

int main() {
  bool ok = straight();
  ok &= forked();
  ok &= nested();
  return verdict("capture", ok);
}
