// Queries of a capturing stream, and attributes of captured kernels. A stream's dependencies, as queried, stay the same when another stream
// is queried, also over a pause; a kernel node has the priority of its stream or of its launch.
#include <algorithm>
#include <list>

#include "program.h"

__global__ void store(int* to, int value) { *to = value; }

namespace {

struct Stream {
  explicit Stream(int priority = 0) {
    CHECK(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, priority));
    CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  }
  ~Stream() {
    CHECK(cudaStreamDestroy(stream));
    CHECK(cudaEventDestroy(event));
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  operator cudaStream_t() const { return stream; }
  // Makes this stream wait for all work of the other one.
  void joins(const Stream& other) const {
    CHECK(cudaEventRecord(other.event, other));
    CHECK(cudaStreamWaitEvent(stream, other.event, 0));
  }
  void stores(int* to, int value) const {
    store<<<1, 1, 0, stream>>>(to, value);
    CHECK(cudaGetLastError());
  }
  cudaStream_t stream;
  cudaEvent_t event;
};

bool isSame(const cudaGraphEdgeData& one, const cudaGraphEdgeData& other) { return std::memcmp(&one, &other, sizeof one) == 0; }

// The dependencies of a stream's next node: CUDA's arrays, and a copy of their contents.
struct Place {
  explicit Place(cudaStream_t stream) {
    cudaStreamCaptureStatus status;
    CHECK(cudaStreamGetCaptureInfo(stream, &status, nullptr, &graph, &nodes, &edges, &count));
    toldNodes.assign(nodes, nodes + count);
    toldEdges.assign(edges, edges + count);
  }
  bool isAsTold() const {
    bool ok = std::equal(nodes, nodes + count, toldNodes.begin());
    for (size_t i = 0; i < count; ++i) ok &= isSame(edges[i], toldEdges[i]);
    return ok;
  }
  // Adds a kernel behind these nodes, and makes the stream continue behind it.
  bool continues(cudaStream_t stream, int* to, int value) const {
    void* arguments[] = {&to, &value};
    cudaGraphNodeParams params{};
    params.type = cudaGraphNodeTypeKernel;
    params.kernel.func = reinterpret_cast<void*>(store);
    params.kernel.gridDim = params.kernel.blockDim = dim3(1);
    params.kernel.kernelParams = arguments;
    cudaGraphNode_t node;
    CHECK(cudaGraphAddNode(&node, graph, nodes, edges, count, &params));
    std::vector<cudaGraphNode_t> before(count);
    std::vector<cudaGraphEdgeData> data(count);
    size_t found = count;
    CHECK(cudaGraphNodeGetDependencies(node, before.data(), data.data(), &found));
    bool ok = EXPECT(found == count);
    for (size_t i = 0; i < count; ++i) {  // in any order
      size_t at = std::find(before.begin(), before.end(), toldNodes[i]) - before.begin();
      ok &= EXPECT(at < count && isSame(data[at], toldEdges[i]));
    }
    CHECK(cudaStreamUpdateCaptureDependencies(stream, &node, nullptr, 1, cudaStreamSetCaptureDependencies));
    return ok;
  }

  cudaGraph_t graph = nullptr;
  const cudaGraphNode_t* nodes = nullptr;
  const cudaGraphEdgeData* edges = nullptr;
  size_t count = 0;
  std::vector<cudaGraphNode_t> toldNodes;
  std::vector<cudaGraphEdgeData> toldEdges;
};

// Ends a capture, and launches what was captured.
void endAndRun(cudaStream_t stream) {
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  CHECK(cudaStreamEndCapture(stream, &graph));
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  CHECK(cudaGraphLaunch(exec, stream));
  CHECK(cudaStreamSynchronize(stream));
  CHECK(cudaGraphExecDestroy(exec));
  CHECK(cudaGraphDestroy(graph));
}

// One stream depends on two nodes; one of the same capture on one node, by an edge with a port; one belongs to another capture.
bool placesStay() {
  Stream first, second, third, apart;
  DeviceArray<int> values(std::vector<int>(8, 0));
  CHECK(cudaStreamBeginCapture(first, cudaStreamCaptureModeRelaxed));
  CHECK(cudaStreamBeginCapture(apart, cudaStreamCaptureModeRelaxed));
  first.stores(values, 1);
  second.joins(first);
  third.joins(first);
  first.stores(values + 1, 2);
  second.stores(values + 2, 3);
  third.stores(values + 3, 4);
  apart.stores(values + 4, 5);
  first.joins(third);
  cudaGraphNode_t last = Place(second).nodes[0];
  cudaGraphEdgeData programmatic{};
  programmatic.from_port = cudaGraphKernelNodePortProgrammatic;
  programmatic.type = cudaGraphDependencyTypeProgrammatic;
  CHECK(cudaStreamUpdateCaptureDependencies(second, &last, &programmatic, 1, cudaStreamSetCaptureDependencies));

  const Place ofFirst(first), ofSecond(second), ofApart(apart);
  bool ok = EXPECT(ofFirst.count == 2) & EXPECT(ofSecond.count == 1) & EXPECT(ofApart.count == 1);
  ok &= EXPECT(ofFirst.graph == ofSecond.graph) & EXPECT(ofFirst.graph != ofApart.graph);
  ok &= EXPECT(ofSecond.toldNodes[0] == last) & EXPECT(isSame(ofSecond.edges[0], programmatic));
  auto areAsTold = [&] { return EXPECT(ofFirst.isAsTold()) & EXPECT(ofSecond.isAsTold()) & EXPECT(ofApart.isAsTold()); };
  ok &= areAsTold();

  pausePoint();

  ok &= areAsTold();
  ok &= ofFirst.continues(first, values + 5, 6);
  ok &= ofSecond.continues(second, values + 6, 7);
  ok &= ofApart.continues(apart, values + 7, 8);
  first.joins(second);
  endAndRun(first);
  endAndRun(apart);
  return ok & same("stored", values.download(), {1, 2, 3, 4, 5, 6, 7, 8});
}

int priorityOf(cudaGraphNode_t node) {
  cudaKernelNodeAttrValue value{};
  value.priority = 99;
  CHECK(cudaGraphKernelNodeGetAttribute(node, cudaLaunchAttributePriority, &value));
  return value.priority;
}
int priorityOf(cudaStream_t stream) {
  int priority = 99;
  CHECK(cudaStreamGetPriority(stream, &priority));
  return priority;
}

// Streams of each priority join one capture.
bool priorityIsTheStreams(int least, int greatest) {
  Stream first;
  std::list<Stream> others;
  DeviceArray<int> value(1);
  CHECK(cudaStreamBeginCapture(first, cudaStreamCaptureModeRelaxed));
  first.stores(value, 1);
  bool ok = EXPECT(priorityOf(first) == 0) & EXPECT(priorityOf(Place(first).nodes[0]) == 0);
  for (int priority = greatest; priority <= least; ++priority) {
    Stream& other = others.emplace_back(priority);
    other.joins(first);
    other.stores(value, 1);
    ok &= EXPECT(priorityOf(other) == priority) & EXPECT(priorityOf(Place(other).nodes[0]) == priority);
    first.joins(other);
  }
  endAndRun(first);
  return ok & same("stored with every priority", value.download(), {1});
}

// The launch's priority, in streams of two other priorities.
bool priorityIsTheLaunchs(int least, int greatest) {
  const int given = greatest + 1;
  DeviceArray<int> value(1);
  int* to = value;
  bool ok = true;
  for (int priority : {least, greatest}) {
    Stream stream(priority);
    cudaLaunchAttribute attribute{};
    attribute.id = cudaLaunchAttributePriority;
    attribute.val.priority = given;
    cudaLaunchConfig_t config{};
    config.gridDim = config.blockDim = dim3(1);
    config.stream = stream;
    config.attrs = &attribute;
    config.numAttrs = 1;
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    CHECK(cudaLaunchKernelEx(&config, store, to, 2));
    ok &= EXPECT(priorityOf(Place(stream).nodes[0]) == given);
    endAndRun(stream);
  }
  return ok & same("stored with a launch's priority", value.download(), {2});
}

// Executable graphs of a kernel captured with the greatest priority. In the one that uses node priorities, an update cannot change the
// priority.
struct Prioritized {
  explicit Prioritized(int greatest) : high(greatest) {
    cudaGraph_t graph = captured(high, 1);
    CHECK(cudaGraphInstantiate(&uses, graph, cudaGraphInstantiateFlagUseNodePriority));
    CHECK(cudaGraphInstantiate(&usesNot, graph, 0));
    CHECK(cudaGraphDestroy(graph));
  }
  ~Prioritized() {
    for (cudaGraphExec_t exec : {uses, usesNot}) CHECK(cudaGraphExecDestroy(exec));
  }
  cudaGraph_t captured(const Stream& stream, int stored) const {
    cudaGraph_t graph;
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    stream.stores(value, stored);
    CHECK(cudaStreamEndCapture(stream, &graph));
    return graph;
  }
  bool stores(cudaGraphExec_t exec, int wanted) {
    value.upload({0});
    CHECK(cudaGraphLaunch(exec, usual));
    CHECK(cudaStreamSynchronize(usual));
    return same("stored", value.download(), {wanted});
  }
  static bool update(cudaGraphExec_t exec, cudaGraph_t graph, cudaError_t wanted, cudaGraphExecUpdateResult why) {
    cudaGraphExecUpdateResultInfo info{};
    bool ok = EXPECT_ERROR(cudaGraphExecUpdate(exec, graph, &info), wanted) & EXPECT(info.result == why);
    cudaGetLastError();
    CHECK(cudaGraphDestroy(graph));
    return ok;
  }
  // It stores `now`; after the update it stores `next` or 100 more.
  bool check(int now, int next) {
    bool ok = stores(uses, now);
    ok &= update(uses, captured(usual, next + 100), cudaErrorGraphExecUpdateFailure, cudaGraphExecUpdateErrorAttributesChanged);
    ok &= stores(uses, now);
    ok &= update(uses, captured(high, next), cudaSuccess, cudaGraphExecUpdateSuccess);
    ok &= stores(uses, next);
    ok &= update(usesNot, captured(usual, next + 100), cudaSuccess, cudaGraphExecUpdateSuccess);
    ok &= stores(usesNot, next + 100);
    ok &= update(usesNot, captured(high, next), cudaSuccess, cudaGraphExecUpdateSuccess);
    return ok & stores(usesNot, next);
  }

  Stream high, usual;
  DeviceArray<int> value{1};
  cudaGraphExec_t uses, usesNot;
};

}  // namespace

int main() {
  int least = 0, greatest = 0;
  CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  bool ok = EXPECT(greatest < least);
  Prioritized prioritized(greatest);
  ok &= prioritized.check(1, 2);
  ok &= priorityIsTheStreams(least, greatest);
  ok &= placesStay();  // contains the pause
  ok &= prioritized.check(2, 3);
  ok &= priorityIsTheStreams(least, greatest);
  ok &= priorityIsTheLaunchs(least, greatest);
  return verdict("capture-places", ok);
}
