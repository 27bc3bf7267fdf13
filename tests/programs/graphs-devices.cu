// Graphs with work on two devices, and graphs launched into streams of another device than their nodes': explicit and captured, with
// kernels, copies, fills, host functions and events, changed between launches, over a pause.
#include <vector>

#include "peer-devices.h"

namespace {

constexpr int count = 4096;

}  // namespace

__global__ void add(int* data, int by) {
  const int i = threadIdx.x + blockIdx.x * blockDim.x;
  if (i < count) data[i] += by;
}

// Slow enough to reveal work that does not wait for it.
__global__ void addSlowly(int* data, int by) {
  const int i = threadIdx.x + blockIdx.x * blockDim.x;
  int turns = 0;
  for (volatile int k = 0; k < 2000; ++k) turns += k & 1;
  if (i < count) data[i] += turns == 1000 ? by : 1000000;
}

namespace {

struct Side {
  explicit Side(int device) : device(device) {
    CHECK(cudaSetDevice(device));
    CHECK(cudaMalloc(&data, count * sizeof(int)));
    CHECK(cudaMemset(data, 0, count * sizeof(int)));
    CHECK(cudaStreamCreate(&stream));
    loadKernel(add);
    loadKernel(addSlowly);
    CHECK(cudaDeviceSynchronize());
  }
  int last() const {
    int value = 0;
    CHECK(cudaMemcpy(&value, data + count - 1, sizeof value, cudaMemcpyDefault));
    return value;
  }

  const int device;
  int* data = nullptr;
  cudaStream_t stream = nullptr;
};

cudaGraphNode_t kernelNode(cudaGraph_t graph, const Side& side, std::vector<cudaGraphNode_t> before, int* data, int by,
                           void (*kernel)(int*, int) = add) {
  CHECK(cudaSetDevice(side.device));
  void* arguments[] = {&data, &by};
  cudaKernelNodeParams params{};
  params.func = reinterpret_cast<void*>(kernel);
  params.gridDim = dim3(blocksFor(count, 256));
  params.blockDim = dim3(256);
  params.kernelParams = arguments;
  cudaGraphNode_t node;
  CHECK(cudaGraphAddKernelNode(&node, graph, before.data(), before.size(), &params));
  return node;
}

cudaGraphNode_t copyNode(cudaGraph_t graph, const Side& side, std::vector<cudaGraphNode_t> before, void* to, const void* from) {
  CHECK(cudaSetDevice(side.device));
  cudaGraphNode_t node;
  CHECK(cudaGraphAddMemcpyNode1D(&node, graph, before.data(), before.size(), to, from, count * sizeof(int), cudaMemcpyDefault));
  return node;
}

void countCall(void* calls) { ++*static_cast<int*>(calls); }

// One device adds, the other copies the values, adds and copies them back; with a host function in between.
struct Pair {
  Pair(const Side& first, const Side& second) {
    CHECK(cudaGraphCreate(&graph, 0));
    one = kernelNode(graph, first, {}, first.data, 1, addSlowly);
    auto over = copyNode(graph, second, {one}, second.data, first.data);
    cudaHostNodeParams host{countCall, &calls};
    cudaGraphNode_t call;
    CHECK(cudaGraphAddHostNode(&call, graph, &over, 1, &host));
    two = kernelNode(graph, second, {call}, second.data, 10, addSlowly);
    auto back = copyNode(graph, first, {two}, first.data, second.data);
    kernelNode(graph, first, {back}, first.data, 100);
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
  }
  ~Pair() {
    CHECK(cudaGraphExecDestroy(exec));
    CHECK(cudaGraphDestroy(graph));
  }
  // Sets the second device's addend.
  void setSecond(const Side& second, int by) const {
    int* data = second.data;
    void* arguments[] = {&data, &by};
    cudaKernelNodeParams params{};
    params.func = reinterpret_cast<void*>(addSlowly);
    params.gridDim = dim3(blocksFor(count, 256));
    params.blockDim = dim3(256);
    params.kernelParams = arguments;
    CHECK(cudaSetDevice(second.device));
    CHECK(cudaGraphExecKernelNodeSetParams(exec, two, &params));
  }
  void launch(const Side& side) const {
    CHECK(cudaSetDevice(side.device));
    CHECK(cudaGraphLaunch(exec, side.stream));
  }

  cudaGraph_t graph;
  cudaGraphExec_t exec;
  cudaGraphNode_t one, two;
  int calls = 0;
};

bool worksOnBoth(const Side& first, const Side& second, const Pair& pair, int before, int calls, int by = 10) {
  const int callsBefore = pair.calls;
  for (int i = 0; i < calls; ++i) pair.launch(i % 2 == 0 ? first : second);
  // Each launch waits for the previous one, whichever stream it is in; the streams wait for their launches.
  for (auto* side : {&first, &second}) {
    CHECK(cudaSetDevice(side->device));
    CHECK(cudaStreamSynchronize(side->stream));
  }
  const int now = before + calls * (101 + by);
  return EXPECT(first.last() == now) & EXPECT(second.last() == now - 100) & EXPECT(pair.calls - callsBefore == calls);
}

// A graph of one device, ordered in a stream of the other.
bool runsInOthersStream(const Side& first, const Side& second) {
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  CHECK(cudaGraphCreate(&graph, 0));
  kernelNode(graph, first, {}, first.data, 1);
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  CHECK(cudaSetDevice(second.device));
  CHECK(cudaGraphUpload(exec, second.stream));
  const int begin = 5;
  std::vector<int> values(count, begin);
  CHECK(cudaMemcpy(first.data, values.data(), count * sizeof(int), cudaMemcpyDefault));
  CHECK(cudaMemset(second.data, 0, count * sizeof(int)));
  CHECK(cudaDeviceSynchronize());
  for (int i = 0; i < 3; ++i) {
    addSlowly<<<blocksFor(count, 256), 256, 0, second.stream>>>(second.data, 1);
    CHECK(cudaMemcpyAsync(first.data, second.data, count * sizeof(int), cudaMemcpyDefault, second.stream));
    CHECK(cudaGraphLaunch(exec, second.stream));
    CHECK(cudaMemcpyAsync(second.data, first.data, count * sizeof(int), cudaMemcpyDefault, second.stream));
  }
  CHECK(cudaStreamSynchronize(second.stream));
  bool ok = EXPECT(first.last() == 6) & EXPECT(second.last() == 6);
  CHECK(cudaGraphLaunch(exec, cudaStreamLegacy));
  CHECK(cudaStreamSynchronize(cudaStreamLegacy));
  ok &= EXPECT(first.last() == 7);
  CHECK(cudaGraphExecDestroy(exec));
  CHECK(cudaGraphDestroy(graph));
  return ok;
}

// Streams of both devices captured into one graph; the second stream joins the first one's capture.
cudaGraphExec_t captured(const Side& first, const Side& second) {
  cudaEvent_t fork, join;
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  CHECK(cudaSetDevice(first.device));
  CHECK(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
  CHECK(cudaStreamBeginCapture(first.stream, cudaStreamCaptureModeGlobal));
  CHECK(cudaMemsetAsync(first.data, 0, count * sizeof(int), first.stream));
  CHECK(cudaEventRecord(fork, first.stream));
  CHECK(cudaSetDevice(second.device));
  CHECK(cudaEventCreateWithFlags(&join, cudaEventDisableTiming));
  CHECK(cudaStreamWaitEvent(second.stream, fork, 0));
  CHECK(cudaMemsetAsync(second.data, 0, count * sizeof(int), second.stream));
  addSlowly<<<blocksFor(count, 256), 256, 0, second.stream>>>(second.data, 3);
  CHECK(cudaEventRecord(join, second.stream));
  CHECK(cudaSetDevice(first.device));
  addSlowly<<<blocksFor(count, 256), 256, 0, first.stream>>>(first.data, 4);
  CHECK(cudaStreamWaitEvent(first.stream, join, 0));
  add<<<blocksFor(count, 256), 256, 0, first.stream>>>(first.data, 5);
  CHECK(cudaStreamEndCapture(first.stream, &graph));
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  CHECK(cudaGraphDestroy(graph));
  CHECK(cudaEventDestroy(fork));
  CHECK(cudaSetDevice(second.device));
  CHECK(cudaEventDestroy(join));
  return exec;
}

bool runsCaptured(const Side& first, const Side& second, cudaGraphExec_t exec) {
  CHECK(cudaSetDevice(first.device));
  CHECK(cudaGraphLaunch(exec, first.stream));
  CHECK(cudaStreamSynchronize(first.stream));
  return EXPECT(first.last() == 9) & EXPECT(second.last() == 3);
}

// Memory of the other device that is freed while a launch uses it is freed behind the launch.
bool freesBehind(const Side& first, const Side& second) {
  CHECK(cudaSetDevice(second.device));
  int *more = nullptr, *next = nullptr;
  CHECK(cudaMalloc(&more, count * sizeof(int)));
  CHECK(cudaMemset(more, 0, count * sizeof(int)));
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  CHECK(cudaGraphCreate(&graph, 0));
  auto slow = kernelNode(graph, first, {}, first.data, 0, addSlowly);
  for (int i = 0; i < 20; ++i) slow = kernelNode(graph, first, {slow}, first.data, 0, addSlowly);
  auto last = kernelNode(graph, second, {slow}, more, 8);
  copyNode(graph, second, {last}, second.data, more);
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  CHECK(cudaSetDevice(first.device));
  CHECK(cudaGraphLaunch(exec, first.stream));
  CHECK(cudaGraphExecDestroy(exec));
  CHECK(cudaSetDevice(second.device));
  CHECK(cudaFree(more));
  CHECK(cudaMalloc(&next, count * sizeof(int)));
  CHECK(cudaMemset(next, 0xff, count * sizeof(int)));
  CHECK(cudaSetDevice(first.device));
  CHECK(cudaStreamSynchronize(first.stream));
  const bool ok = EXPECT(second.last() == 8);
  CHECK(cudaFree(next));
  CHECK(cudaGraphDestroy(graph));
  return ok;
}

bool recordsAndWaits(const Side& first, const Side& second) {
  cudaEvent_t started, done;
  CHECK(cudaSetDevice(first.device));
  CHECK(cudaEventCreate(&started));
  CHECK(cudaSetDevice(second.device));
  CHECK(cudaEventCreate(&done));
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  CHECK(cudaGraphCreate(&graph, 0));
  cudaGraphNode_t wait, record;
  CHECK(cudaGraphAddEventWaitNode(&wait, graph, nullptr, 0, started));
  auto one = kernelNode(graph, first, {wait}, first.data, 1, addSlowly);
  auto two = kernelNode(graph, second, {one}, second.data, 2, addSlowly);
  CHECK(cudaGraphAddEventRecordNode(&record, graph, &two, 1, done));
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  const int firstBefore = first.last(), secondBefore = second.last();
  CHECK(cudaSetDevice(first.device));
  addSlowly<<<blocksFor(count, 256), 256, 0, first.stream>>>(first.data, 10);
  CHECK(cudaEventRecord(started, first.stream));
  CHECK(cudaSetDevice(second.device));
  CHECK(cudaGraphLaunch(exec, second.stream));
  CHECK(cudaEventSynchronize(done));
  bool ok = EXPECT(first.last() == firstBefore + 11) & EXPECT(second.last() == secondBefore + 2);
  CHECK(cudaStreamSynchronize(second.stream));
  ok &= EXPECT_ERROR(cudaEventQuery(done), cudaSuccess);
  CHECK(cudaGraphExecDestroy(exec));
  CHECK(cudaGraphDestroy(graph));
  CHECK(cudaEventDestroy(started));
  CHECK(cudaEventDestroy(done));
  return ok;
}

// A graph that records events of both devices; streams and the host of both wait for them, besides records in streams.
struct RecordedOnBoth {
  RecordedOnBoth(const Side& first, const Side& second) {
    for (auto* side : {&first, &second}) {
      CHECK(cudaSetDevice(side->device));
      CHECK(cudaEventCreate(&begun[side->device]));
      CHECK(cudaEventCreate(&ended[side->device]));
    }
    CHECK(cudaGraphCreate(&graph, 0));
    cudaGraphNode_t last = nullptr;
    for (auto* side : {&first, &second}) {
      last = record(last, begun[side->device]);
      last = kernelNode(graph, *side, {last}, side->data, 1, addSlowly);
      last = record(last, ended[side->device]);
    }
    lastRecord = last;
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
  }
  ~RecordedOnBoth() {
    CHECK(cudaGraphExecDestroy(exec));
    CHECK(cudaGraphDestroy(graph));
    for (int device : {0, 1}) {
      CHECK(cudaEventDestroy(begun[device]));
      CHECK(cudaEventDestroy(ended[device]));
    }
  }
  cudaGraphNode_t record(cudaGraphNode_t before, cudaEvent_t event) const {
    cudaGraphNode_t node;
    CHECK(cudaGraphAddEventRecordNode(&node, graph, &before, before == nullptr ? 0 : 1, event));
    return node;
  }
  // Each device's data is copied in streams of both devices after its event has completed.
  bool isWaitedFor(const Side& first, const Side& second) const {
    const Side* const sides[] = {&first, &second};
    const int was[] = {first.last(), second.last()};
    int* copies[2][2];
    for (auto* side : sides) {
      CHECK(cudaSetDevice(side->device));
      for (int from : {0, 1}) CHECK(cudaMalloc(&copies[from][side->device], count * sizeof(int)));
      addSlowly<<<blocksFor(count, 256), 256, 0, side->stream>>>(side->data, 0);
      CHECK(cudaEventRecord(ended[side->device], side->stream));  // the graph's record is later
      CHECK(cudaStreamSynchronize(side->stream));
    }
    CHECK(cudaSetDevice(second.device));
    CHECK(cudaGraphLaunch(exec, second.stream));
    for (auto* from : sides)
      for (auto* to : sides) {
        CHECK(cudaSetDevice(to->device));
        CHECK(cudaStreamWaitEvent(to->stream, ended[from->device], 0));
        CHECK(cudaMemcpyAsync(copies[from->device][to->device], from->data, count * sizeof(int), cudaMemcpyDefault, to->stream));
      }
    bool ok = true;
    for (auto* from : sides) {
      float milliseconds = -1;
      CHECK(cudaEventSynchronize(ended[from->device]));
      ok &= EXPECT(from->last() == was[from->device] + 1) & EXPECT_ERROR(cudaEventQuery(ended[from->device]), cudaSuccess);
      CHECK(cudaEventElapsedTime(&milliseconds, begun[from->device], ended[from->device]));
      ok &= EXPECT(milliseconds >= 0);
    }
    for (auto* to : sides) {
      CHECK(cudaSetDevice(to->device));
      CHECK(cudaStreamSynchronize(to->stream));
      for (int from : {0, 1}) {
        int copy = 0;
        CHECK(cudaMemcpy(&copy, copies[from][to->device] + count - 1, sizeof copy, cudaMemcpyDefault));
        ok &= EXPECT(copy == was[from] + 1);
        CHECK(cudaFree(copies[from][to->device]));
      }
    }
    return ok;
  }
  // Another event of the same device replaces the last one for one launch.
  bool recordsAnother(const Side& first, const Side& second) const {
    cudaEvent_t other;
    CHECK(cudaSetDevice(second.device));
    CHECK(cudaEventCreateWithFlags(&other, cudaEventDisableTiming));
    CHECK(cudaGraphExecEventRecordNodeSetEvent(exec, lastRecord, other));
    CHECK(cudaSetDevice(first.device));
    const int was = second.last();
    CHECK(cudaGraphLaunch(exec, first.stream));
    CHECK(cudaEventSynchronize(other));
    const bool ok = EXPECT(second.last() == was + 1);
    CHECK(cudaGraphExecEventRecordNodeSetEvent(exec, lastRecord, ended[second.device]));
    CHECK(cudaEventDestroy(other));
    CHECK(cudaStreamSynchronize(first.stream));
    return ok;
  }

  cudaGraph_t graph;
  cudaGraphExec_t exec;
  cudaGraphNode_t lastRecord;
  cudaEvent_t begun[2], ended[2];
};

}  // namespace

int main() {
  if (!devicesReachEachOther()) return getenv("VGPU_EMULATED") == nullptr ? notHere : 1;  // emulated devices are peers
  Side first(0), second(1);
  bool ok = true;
  for (auto* side : {&first, &second}) {
    CHECK(cudaSetDevice(side->device));
    CHECK(cudaDeviceEnablePeerAccess(1 - side->device, 0));
  }
  Pair pair(first, second), reversed(second, first);
  ok &= worksOnBoth(first, second, pair, 0, 4);
  pair.setSecond(second, 20);
  ok &= worksOnBoth(first, second, pair, 4 * 111, 3, 20);
  ok &= runsInOthersStream(first, second);
  const RecordedOnBoth recorded(first, second);
  ok &= recorded.isWaitedFor(first, second) & recorded.recordsAnother(first, second);
  cudaGraphExec_t fromStreams = captured(first, second);
  ok &= runsCaptured(first, second, fromStreams);
  CHECK(cudaGraphLaunch(recorded.exec, first.stream));  // its events are queried after the pause
  pausePoint();
  float milliseconds = -1;
  for (int device : {0, 1}) {
    CHECK(cudaEventSynchronize(recorded.ended[device]));
    CHECK(cudaEventElapsedTime(&milliseconds, recorded.begun[device], recorded.ended[device]));
    ok &= EXPECT(milliseconds >= 0);
  }
  CHECK(cudaStreamSynchronize(first.stream));
  ok &= recorded.isWaitedFor(first, second) & recorded.recordsAnother(first, second);
  ok &= runsCaptured(first, second, fromStreams);
  ok &= worksOnBoth(first, second, pair, 9, 2, 20);
  const int before = second.last();
  ok &= worksOnBoth(second, first, reversed, before, 3);
  pair.setSecond(second, 30);
  ok &= worksOnBoth(first, second, pair, first.last(), 2, 30);
  ok &= runsInOthersStream(second, first) & freesBehind(first, second) & recordsAndWaits(first, second);
  CHECK(cudaGraphExecDestroy(fromStreams));
  return verdict("graphs-devices", ok);
}
