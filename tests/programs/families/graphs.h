// Graphs: captured, built, updated, with conditional nodes, launched from kernels, with memory nodes and user objects.
#pragma once

#include <atomic>

#include "../kernel-node.h"
#include "place.h"

namespace families {

__global__ void countDown(cudaGraphConditionalHandle handle, uint32_t* left) { cudaGraphSetConditional(handle, --*left); }

__global__ void launchFirst(const cudaGraphExec_t* graphs, int* errors) {
  errors[0] = cudaGraphLaunch(graphs[0], cudaStreamGraphFireAndForget);
  errors[1] = cudaGraphLaunch(graphs[1], cudaStreamGraphTailLaunch);
}

// A node that adds `value` to all numbers of `data`.
class Adder {
 public:
  Adder(const Place& place, uint32_t* data, uint32_t value) : address(data), count(place.count()), value(value) {
    params.func = reinterpret_cast<void*>(addTo);
    params.gridDim = dim3(place.blocks());
    params.blockDim = dim3(128);
    params.kernelParams = parameters;
  }
  Adder(const Adder&) = delete;
  cudaGraphNode_t in(cudaGraph_t graph, cudaGraphNode_t before = nullptr) const {
    cudaGraphNode_t node;
    CHECK(cudaGraphAddKernelNode(&node, graph, &before, before == nullptr ? 0 : 1, &params));
    return node;
  }
  const cudaKernelNodeParams* operator()() const { return &params; }

 private:
  uint32_t* address;
  int count;
  uint32_t value;
  void* parameters[3] = {&address, &count, &value};
  cudaKernelNodeParams params{};
};

inline bool launchTwice(const Place& place, const char* family, cudaGraph_t graph, const uint32_t* data, uint32_t eachAdds) {
  cudaGraphExec_t exec;
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  CHECK(cudaGraphLaunch(exec, place.stream));
  CHECK(cudaGraphLaunch(exec, place.stream));
  const bool ok = place.holds(family, data, 2 * eachAdds);
  CHECK(cudaGraphExecDestroy(exec));
  CHECK(cudaGraphDestroy(graph));
  return ok;
}

inline bool captures(const Place& place) {
  DeviceArray<uint32_t> data(place.count());
  const Place other(static_cast<int>(place.seed), 2);
  cudaEvent_t fork, join;
  CHECK(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
  CHECK(cudaEventCreateWithFlags(&join, cudaEventDisableTiming));
  place.write(data, place.numbers());
  CHECK(cudaStreamBeginCapture(place.stream, cudaStreamCaptureModeThreadLocal));
  place.add(data, 6);
  CHECK(cudaEventRecord(fork, place.stream));
  CHECK(cudaStreamWaitEvent(other.stream, fork, 0));
  place.add(data, 7, other.stream);
  CHECK(cudaEventRecord(join, other.stream));
  CHECK(cudaStreamWaitEvent(place.stream, join, 0));
  place.add(data, 8);
  cudaGraph_t graph;
  CHECK(cudaStreamEndCapture(place.stream, &graph));
  CHECK(cudaEventDestroy(fork));
  CHECK(cudaEventDestroy(join));
  return launchTwice(place, "captures", graph, data, 6 + 7 + 8);
}

inline bool graphs(const Place& place) {
  DeviceArray<uint32_t> data(place.count());
  place.write(data, place.numbers());
  cudaGraph_t graph;
  CHECK(cudaGraphCreate(&graph, 0));
  const Adder first(place, data, 9), second(place, data, 10);
  const cudaGraphNode_t last = first.in(graph, first.in(graph));
  CHECK(cudaGraphKernelNodeSetParams(last, second()));
  return launchTwice(place, "graphs", graph, data, 9 + 10);
}

// An executable graph that is updated between launches: one node of it, and all of it.
inline bool updatedGraphs(const Place& place) {
  DeviceArray<uint32_t> data(place.count());
  place.write(data, place.numbers());
  const Adder one(place, data, 1), two(place, data, 2), three(place, data, 3);
  cudaGraph_t graph, other;
  cudaGraphExec_t exec;
  cudaGraphExecUpdateResultInfo info{};
  CHECK(cudaGraphCreate(&graph, 0));
  CHECK(cudaGraphCreate(&other, 0));
  const cudaGraphNode_t node = one.in(graph);
  three.in(other);
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  CHECK(cudaGraphLaunch(exec, place.stream));
  CHECK(cudaGraphExecKernelNodeSetParams(exec, node, two()));
  CHECK(cudaGraphLaunch(exec, place.stream));
  CHECK(cudaGraphExecUpdate(exec, other, &info));
  CHECK(cudaGraphLaunch(exec, place.stream));
  const bool ok = EXPECT(info.result == cudaGraphExecUpdateSuccess) & place.holds("updated graphs", data, 1 + 2 + 3);
  CHECK(cudaGraphExecDestroy(exec));
  CHECK(cudaGraphDestroy(graph));
  CHECK(cudaGraphDestroy(other));
  return ok;
}

// A body that runs as often as a word says.
inline bool conditionalGraphs(const Place& place) {
  const uint32_t times = 1 + place.seed % 5;
  DeviceArray<uint32_t> data(place.count()), left(1);
  place.write(data, place.numbers());
  cudaGraph_t graph;
  cudaGraphConditionalHandle handle;
  cudaGraphNode_t filled, loops;
  CHECK(cudaGraphCreate(&graph, 0));
  CHECK(cudaGraphConditionalHandleCreate(&handle, graph, 1, cudaGraphCondAssignDefault));
  cudaMemsetParams fill{};
  fill.dst = static_cast<uint32_t*>(left);
  fill.value = times;
  fill.elementSize = sizeof(uint32_t);
  fill.width = fill.height = 1;
  CHECK(cudaGraphAddMemsetNode(&filled, graph, nullptr, 0, &fill));
  cudaGraphNodeParams params{};
  params.type = cudaGraphNodeTypeConditional;
  params.conditional.handle = handle;
  params.conditional.type = cudaGraphCondTypeWhile;
  params.conditional.size = 1;
  CHECK(cudaGraphAddNode(&loops, graph, &filled, nullptr, 1, &params));
  const Adder adder(place, data, 13);
  addKernel<cudaGraphConditionalHandle, uint32_t*>(params.conditional.phGraph_out[0], {adder.in(params.conditional.phGraph_out[0])},
                                                   countDown, handle, left);
  return launchTwice(place, "conditional graphs", graph, data, 13 * times);
}

// A kernel launches a fire-and-forget graph and a tail graph.
inline bool deviceGraphs(const Place& place) {
  DeviceArray<uint32_t> data(place.count());
  DeviceArray<cudaGraphExec_t> handles(2);
  DeviceArray<int> errors(2);
  place.write(data, place.numbers());
  cudaGraph_t graphs[3];
  cudaGraphExec_t execs[3];
  for (int i = 0; i < 2; ++i) {
    CHECK(cudaGraphCreate(&graphs[i], 0));
    Adder(place, data, 20 + i).in(graphs[i]);
    CHECK(cudaGraphInstantiate(&execs[i], graphs[i], cudaGraphInstantiateFlagDeviceLaunch));
    CHECK(cudaGraphUpload(execs[i], place.stream));
  }
  CHECK(cudaMemcpyAsync(handles, execs, 2 * sizeof *execs, cudaMemcpyHostToDevice, place.stream));
  CHECK(cudaGraphCreate(&graphs[2], 0));
  addKernel<const cudaGraphExec_t*, int*>(graphs[2], {}, launchFirst, handles, errors);
  CHECK(cudaGraphInstantiate(&execs[2], graphs[2], 0));
  CHECK(cudaGraphLaunch(execs[2], place.stream));
  std::vector<int> answers(2, cudaErrorUnknown);
  CHECK(cudaMemcpyAsync(answers.data(), errors, 2 * sizeof(int), cudaMemcpyDeviceToHost, place.stream));
  bool ok = place.holds("graphs launched by a kernel", data, 20 + 21) & same("of launches by a kernel", answers, {0, 0});
  for (int i = 0; i < 3; ++i) {
    CHECK(cudaGraphExecDestroy(execs[i]));
    CHECK(cudaGraphDestroy(graphs[i]));
  }
  return ok;
}

// Memory that a graph allocates and frees, with a host node in between.
inline bool graphMemory(const Place& place) {
  DeviceArray<uint32_t> data(place.count());
  std::atomic<int> calls{0};
  uint32_t* own = nullptr;
  place.write(data, place.numbers());
  CHECK(cudaStreamBeginCapture(place.stream, cudaStreamCaptureModeThreadLocal));
  CHECK(cudaMallocAsync(&own, place.bytes(), place.stream));
  CHECK(cudaMemsetAsync(own, 0, place.bytes(), place.stream));
  place.add(own, 14);
  CHECK(cudaLaunchHostFunc(place.stream, [](void* count) { ++*static_cast<std::atomic<int>*>(count); }, &calls));
  addFrom<<<place.blocks(), 128, 0, place.stream>>>(data, own, place.count());
  CHECK(cudaFreeAsync(own, place.stream));
  cudaGraph_t graph;
  CHECK(cudaStreamEndCapture(place.stream, &graph));
  return launchTwice(place, "memory of graphs", graph, data, 14) & EXPECT(calls == 2);
}

// A user object lives as long as a graph or an executable graph that refers to it; a CUDA thread destroys it.
inline bool userObjects(const Place& place) {
  DeviceArray<uint32_t> data(place.count());
  std::atomic<int> ended{0};
  cudaUserObject_t object;
  cudaGraph_t graph;
  place.write(data, place.numbers());
  CHECK(cudaUserObjectCreate(&object, &ended, [](void* count) { ++*static_cast<std::atomic<int>*>(count); }, 1,
                             cudaUserObjectNoDestructorSync));
  CHECK(cudaGraphCreate(&graph, 0));
  Adder(place, data, 15).in(graph);
  CHECK(cudaGraphRetainUserObject(graph, object, 1, cudaGraphUserObjectMove));
  bool ok = EXPECT(ended == 0) & launchTwice(place, "user objects", graph, data, 15);
  while (ended == 0) usleep(1000);
  return ok & EXPECT(ended == 1);
}

}  // namespace families
