// Graphs and the other device's legacy stream: a capture on one device does not affect the other device's legacy stream, and an executable
// graph that is pending in one device's legacy stream is updated while the other device is current.
#include "kernel-node.h"

__global__ void add(int* to, int value) { *to += value; }

// Takes some milliseconds, to reveal work that does not wait for it.
__global__ void storeSlowly(int* to, int value) {
  int turns = 0;
  for (volatile int i = 0; i < 300'000; ++i) turns += i & 1;
  *to = turns == 150'000 ? value : -1;
}

namespace {

void use(int device) { CHECK(cudaSetDevice(device)); }

// The stream belongs to the second device, so the capture does not involve the first one's legacy stream.
struct Captured {
  Captured() {
    use(0);
    CHECK(cudaMalloc(&firsts, sizeof(int)));
    loadKernel(add);
    use(1);
    CHECK(cudaMalloc(&seconds, sizeof(int)));
    loadKernel(add);
    CHECK(cudaStreamCreate(&stream));
  }
  static int valueAt(const int* at) {
    int value = -1;
    CHECK(cudaMemcpy(&value, at, sizeof value, cudaMemcpyDeviceToHost));
    return value;
  }
  static void setAt(int* at, int value) { CHECK(cudaMemcpy(at, &value, sizeof value, cudaMemcpyHostToDevice)); }

  void begin() const {
    use(1);
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    add<<<1, 1, 0, stream>>>(seconds, 1);
    CHECK(cudaGetLastError());
  }
  cudaStreamCaptureStatus status() const {
    cudaStreamCaptureStatus found;
    CHECK(cudaStreamIsCapturing(stream, &found));
    return found;
  }
  bool leavesTheOther() {
    use(1);
    setAt(seconds, 10);
    begin();
    use(0);
    cudaStreamCaptureStatus ofLegacy = cudaStreamCaptureStatusActive;
    bool ok = EXPECT_ERROR(cudaStreamIsCapturing(cudaStreamLegacy, &ofLegacy), cudaSuccess);
    ok &= EXPECT(ofLegacy == cudaStreamCaptureStatusNone);
    setAt(firsts, 5);
    add<<<1, 1, 0, cudaStreamLegacy>>>(firsts, 1);
    ok &= EXPECT_ERROR(cudaGetLastError(), cudaSuccess);
    ok &= EXPECT(valueAt(firsts) == 6) & EXPECT(status() == cudaStreamCaptureStatusActive);
    use(1);
    add<<<1, 1, 0, stream>>>(seconds, 2);
    cudaGraph_t graph = nullptr;
    CHECK(cudaStreamEndCapture(stream, &graph));
    cudaGraphExec_t exec;
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    CHECK(cudaGraphLaunch(exec, stream));
    CHECK(cudaStreamSynchronize(stream));
    ok &= EXPECT(valueAt(seconds) == 13);
    CHECK(cudaGraphExecDestroy(exec));
    CHECK(cudaGraphDestroy(graph));
    return ok;
  }
  // Its own device's legacy stream would have to wait for it.
  bool refusesItsOwn() const {
    begin();
    cudaStreamCaptureStatus ofLegacy;
    bool ok = EXPECT_ERROR(cudaStreamIsCapturing(cudaStreamLegacy, &ofLegacy), cudaErrorStreamCaptureImplicit);
    cudaGetLastError();
    ok &= EXPECT(status() == cudaStreamCaptureStatusActive);
    add<<<1, 1, 0, cudaStreamLegacy>>>(seconds, 1);
    ok &= EXPECT_ERROR(cudaGetLastError(), cudaErrorStreamCaptureImplicit);
    ok &= EXPECT(status() == cudaStreamCaptureStatusInvalidated);
    cudaGraph_t graph = nullptr;
    ok &= EXPECT_ERROR(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated) & EXPECT(graph == nullptr);
    cudaGetLastError();
    return ok;
  }
  bool check() {
    bool ok = leavesTheOther();
    return ok & refusesItsOwn();
  }

  int *firsts = nullptr, *seconds = nullptr;
  cudaStream_t stream = nullptr;
};

// A slow kernel's value, which a host function reads. Two graphs differ in the value and in the kernel's priority, so that an update must
// replace nodes.
struct Updated {
  Updated() {
    use(1);
    CHECK(cudaMalloc(&value, sizeof(int)));
    CHECK(cudaMallocHost(&copy, sizeof(int)));
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    loadKernel(storeSlowly);
    for (int i : {0, 1}) graphs[i] = storing(10 + i, -i);
    CHECK(cudaGraphInstantiate(&exec, graphs[0], 0));
  }
  cudaGraph_t storing(int stored, int priority) {
    cudaGraph_t graph;
    cudaGraphNode_t copied, call;
    CHECK(cudaGraphCreate(&graph, 0));
    auto kernel = addKernel<int*, int>(graph, {}, storeSlowly, value, stored);
    cudaKernelNodeAttrValue attribute{};
    attribute.priority = priority;
    CHECK(cudaGraphKernelNodeSetAttribute(kernel, cudaLaunchAttributePriority, &attribute));
    CHECK(cudaGraphAddMemcpyNode1D(&copied, graph, &kernel, 1, copy, value, sizeof(int), cudaMemcpyDeviceToHost));
    cudaHostNodeParams params{see, this};
    CHECK(cudaGraphAddHostNode(&call, graph, &copied, 1, &params));
    return graph;
  }
  static void see(void* updated) {
    auto& self = *static_cast<Updated*>(updated);
    self.seen.push_back(*self.copy);
  }
  // Launches graph `now`, then updates it to the other one.
  bool isLaunchedBehind(int now) {
    seen.clear();
    use(1);
    CHECK(cudaGraphLaunch(exec, cudaStreamLegacy));
    use(0);
    cudaGraphExecUpdateResultInfo info{};
    CHECK(cudaGraphExecUpdate(exec, graphs[1 - now], &info));
    use(1);
    CHECK(cudaGraphLaunch(exec, stream));
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaStreamSynchronize(cudaStreamLegacy));
    return same("seen by the host function", seen, {10 + now, 11 - now});
  }
  bool check() {
    bool ok = true;
    for (int i = 0; i < 6; ++i) ok &= isLaunchedBehind(i % 2);
    return ok;
  }

  int *value = nullptr, *copy = nullptr;
  cudaStream_t stream = nullptr;
  cudaGraph_t graphs[2];
  cudaGraphExec_t exec = nullptr;
  std::vector<int> seen;
};

}  // namespace

int main() {
  alarm(60);
  int devices = 0;
  CHECK(cudaGetDeviceCount(&devices));
  if (devices < 2) return getenv("VGPU_EMULATED") == nullptr ? notHere : 1;  // VGPU_EMULATED gives the number of emulated devices
  Captured captured;
  Updated updated;
  bool ok = captured.check();
  ok &= updated.check();
  pausePoint();
  ok &= captured.check();
  ok &= updated.check();
  return verdict("graphs-two-devices", ok);
}
