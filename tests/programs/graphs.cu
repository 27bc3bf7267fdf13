// Graphs of explicit nodes: every type, effective dependencies, child graphs, host functions in order in every launch, copies from and to
// pageable memory, and executable graphs that are changed between launches, before and after a suspend.
#include "program.h"

constexpr int count = 1 << 12, block = 256, blocks = count / block;

__global__ void addTo(int* values, int amount) { values[blockIdx.x * block + threadIdx.x] += amount; }
__global__ void scale(int* values, int factor) { values[blockIdx.x * block + threadIdx.x] *= factor; }
__global__ void combine(int* out, const int* a, const int* b) {
  const int i = blockIdx.x * block + threadIdx.x;
  out[i] = a[i] * 1000 + b[i];
}

struct Kernel {
  template <typename... Arguments>
  Kernel(void* function, Arguments*... arguments) : places{arguments...} {
    params.func = function;
    params.gridDim = dim3(blocks);
    params.blockDim = dim3(block);
    params.kernelParams = places.data();
  }
  std::vector<void*> places;
  cudaKernelNodeParams params{};
};

cudaGraphNode_t addKernel(cudaGraph_t graph, const std::vector<cudaGraphNode_t>& before, const Kernel& kernel) {
  cudaGraphNode_t node;
  CHECK(cudaGraphAddKernelNode(&node, graph, before.data(), before.size(), &kernel.params));
  return node;
}

struct Calls {
  std::vector<int> order;
  int own = 0;
};
struct Call {
  Calls* calls;
  int number;
};
void note(void* data) {
  auto* call = static_cast<Call*>(data);
  call->calls->order.push_back(call->number);
}

// A copy in from pageable memory, two branches that join, a copy out, with host functions at both ends.
struct Diamond {
  std::vector<int> input = std::vector<int>(count), output = std::vector<int>(count);
  DeviceArray<int> a{count}, b{count}, joined{count};
  Calls calls;
  Call first{&calls, 1}, second{&calls, 2};
  int amount = 5, factor = 3;
  int *pa = a, *pb = b, *pj = joined;
  cudaGraph_t graph;
  cudaGraphNode_t copyIn, fill, add, times, join, copyOut, begin, end;
  cudaEvent_t event;

  Diamond() {
    CHECK(cudaEventCreate(&event));
    CHECK(cudaGraphCreate(&graph, 0));
    cudaHostNodeParams host{note, &first};
    CHECK(cudaGraphAddHostNode(&begin, graph, nullptr, 0, &host));
    CHECK(cudaGraphAddMemcpyNode1D(&copyIn, graph, &begin, 1, pa, input.data(), count * sizeof(int), cudaMemcpyHostToDevice));
    cudaMemsetParams zero{};
    zero.dst = pb;
    zero.value = 7;
    zero.elementSize = 4;
    zero.width = count;
    zero.height = 1;
    CHECK(cudaGraphAddMemsetNode(&fill, graph, &begin, 1, &zero));
    add = addKernel(graph, {copyIn}, Kernel((void*)addTo, &pa, &amount));
    times = addKernel(graph, {fill}, Kernel((void*)scale, &pb, &factor));
    cudaGraphNode_t empty;
    cudaGraphNode_t both[] = {add, times};
    CHECK(cudaGraphAddEmptyNode(&empty, graph, both, 2));
    join = addKernel(graph, {empty}, Kernel((void*)combine, &pj, &pa, &pb));
    CHECK(cudaGraphAddMemcpyNode1D(&copyOut, graph, &join, 1, output.data(), pj, count * sizeof(int), cudaMemcpyDeviceToHost));
    cudaHostNodeParams last{note, &second};
    CHECK(cudaGraphAddHostNode(&end, graph, &copyOut, 1, &last));
    cudaGraphNode_t record;
    CHECK(cudaGraphAddEventRecordNode(&record, graph, &end, 1, event));
  }

  // After a completed launch.
  bool isRight(int amountNow, int factorNow) {
    std::vector<int> want(count);
    for (int i = 0; i < count; ++i) want[i] = (input[i] + amountNow) * 1000 + 7 * factorNow;
    return same("output", output, want);
  }
  void next(int seed) {
    for (int i = 0; i < count; ++i) input[i] = i % 97 + seed;
  }
};

bool launches() {
  Diamond diamond;
  cudaStream_t stream;
  CHECK(cudaStreamCreate(&stream));
  cudaGraphExec_t exec;
  CHECK(cudaGraphInstantiate(&exec, diamond.graph, 0));
  bool ok = true;

  diamond.next(1);
  CHECK(cudaGraphLaunch(exec, stream));
  CHECK(cudaEventSynchronize(diamond.event));
  ok &= diamond.isRight(5, 3);
  CHECK(cudaStreamSynchronize(stream));

  // Changes apply from the next launch on; the graph itself does not change.
  int amount = 11;
  Kernel changed((void*)addTo, &diamond.pa, &amount);
  CHECK(cudaGraphExecKernelNodeSetParams(exec, diamond.add, &changed.params));
  diamond.next(2);
  CHECK(cudaGraphLaunch(exec, stream));
  CHECK(cudaStreamSynchronize(stream));
  ok &= diamond.isRight(11, 3);

  // Two launches are queued; each calls its host functions in order.
  CHECK(cudaGraphLaunch(exec, stream));
  CHECK(cudaGraphLaunch(exec, stream));
  CHECK(cudaStreamSynchronize(stream));
  ok &= same("host functions", diamond.calls.order, {1, 2, 1, 2, 1, 2, 1, 2});

  pausePoint();

  diamond.next(3);
  CHECK(cudaGraphLaunch(exec, stream));
  CHECK(cudaStreamSynchronize(stream));
  ok &= diamond.isRight(11, 3);
  int factor = 4;
  Kernel scaled((void*)scale, &diamond.pb, &factor);
  CHECK(cudaGraphExecKernelNodeSetParams(exec, diamond.times, &scaled.params));
  CHECK(cudaGraphLaunch(exec, stream));
  CHECK(cudaStreamSynchronize(stream));
  ok &= diamond.isRight(11, 4);

  // Another executable graph of the same graph has the graph's parameters.
  cudaGraphExec_t other;
  CHECK(cudaGraphInstantiate(&other, diamond.graph, 0));
  CHECK(cudaGraphLaunch(other, stream));
  CHECK(cudaStreamSynchronize(stream));
  ok &= diamond.isRight(5, 3);
  float milliseconds = -1;
  cudaEvent_t later;
  CHECK(cudaEventCreate(&later));
  CHECK(cudaEventRecord(later, stream));
  CHECK(cudaEventSynchronize(later));
  CHECK(cudaEventElapsedTime(&milliseconds, diamond.event, later));
  ok &= EXPECT(milliseconds >= 0);

  CHECK(cudaGraphExecDestroy(exec));
  CHECK(cudaGraphExecDestroy(other));
  CHECK(cudaGraphDestroy(diamond.graph));
  CHECK(cudaStreamDestroy(stream));
  return ok;
}

// A chain of `length` additions of 1, as a graph.
cudaGraph_t chain(int* values, int length, int amount) {
  cudaGraph_t graph;
  CHECK(cudaGraphCreate(&graph, 0));
  std::vector<cudaGraphNode_t> before;
  for (int i = 0; i < length; ++i) before = {addKernel(graph, before, Kernel((void*)addTo, &values, &amount))};
  return graph;
}

bool children() {
  DeviceArray<int> values(std::vector<int>(count, 0));
  int* pointer = values;
  cudaGraph_t inner = chain(pointer, 3, 1), outer;
  CHECK(cudaGraphCreate(&outer, 0));
  cudaGraphNode_t first, second;
  int factor = 10;
  CHECK(cudaGraphAddChildGraphNode(&first, outer, nullptr, 0, inner));
  cudaGraphNode_t times = addKernel(outer, {first}, Kernel((void*)scale, &pointer, &factor));
  CHECK(cudaGraphAddChildGraphNode(&second, outer, &times, 1, inner));
  CHECK(cudaGraphDestroy(inner));

  cudaGraph_t clone;
  CHECK(cudaGraphClone(&clone, outer));
  cudaGraphNode_t there;
  CHECK(cudaGraphNodeFindInClone(&there, second, clone));
  CHECK(cudaGraphDestroyNode(there));  // only in the clone

  cudaGraphExec_t exec, shorter;
  CHECK(cudaGraphInstantiate(&exec, outer, 0));
  CHECK(cudaGraphInstantiate(&shorter, clone, 0));
  CHECK(cudaGraphUpload(exec, nullptr));
  CHECK(cudaGraphLaunch(exec, nullptr));
  CHECK(cudaDeviceSynchronize());
  bool ok = same("children", values.download(), std::vector<int>(count, 33));
  CHECK(cudaGraphLaunch(shorter, nullptr));
  ok &= same("clone", values.download(), std::vector<int>(count, 360));

  // Another child of the same shape, and then an update from a whole graph of the same shape.
  cudaGraph_t larger = chain(pointer, 3, 2);
  CHECK(cudaGraphExecChildGraphNodeSetParams(exec, second, larger));
  CHECK(cudaGraphLaunch(exec, nullptr));
  ok &= same("child set", values.download(), std::vector<int>(count, 3636));
  cudaGraph_t line = chain(pointer, 2, 100);
  cudaGraph_t longer = chain(pointer, 3, 100);
  cudaGraphExec_t two;
  CHECK(cudaGraphInstantiate(&two, chain(pointer, 2, 1), 0));
  cudaGraphExecUpdateResultInfo info;
  CHECK(cudaGraphExecUpdate(two, line, &info));
  ok &= EXPECT(info.result == cudaGraphExecUpdateSuccess);
  ok &= EXPECT_ERROR(cudaGraphExecUpdate(two, longer, &info), cudaErrorGraphExecUpdateFailure);
  ok &= EXPECT(info.result == cudaGraphExecUpdateErrorTopologyChanged);
  cudaGetLastError();
  CHECK(cudaGraphLaunch(two, nullptr));
  ok &= same("updated", values.download(), std::vector<int>(count, 3836));

  // A disabled node does nothing, and its dependents still run.
  std::vector<cudaGraphNode_t> nodes(2);
  size_t number = nodes.size();
  CHECK(cudaGraphGetNodes(line, nodes.data(), &number));
  ok &= EXPECT(number == 2);
  cudaGraphExec_t half;
  CHECK(cudaGraphInstantiate(&half, line, 0));
  CHECK(cudaGraphNodeSetEnabled(half, nodes[0], 0));
  unsigned enabled = 1;
  CHECK(cudaGraphNodeGetEnabled(half, nodes[0], &enabled));
  ok &= EXPECT(enabled == 0);
  pausePoint();
  CHECK(cudaGraphLaunch(half, nullptr));
  ok &= same("disabled", values.download(), std::vector<int>(count, 3936));
  for (cudaGraphExec_t each : {exec, shorter, two, half}) CHECK(cudaGraphExecDestroy(each));
  for (cudaGraph_t each : {outer, clone, larger, line, longer}) CHECK(cudaGraphDestroy(each));
  return ok;
}

bool introspection() {
  DeviceArray<int> values(std::vector<int>(count, 0));
  int* pointer = values;
  int amount = 1;
  cudaGraph_t graph;
  CHECK(cudaGraphCreate(&graph, 0));
  cudaGraphNode_t a = addKernel(graph, {}, Kernel((void*)addTo, &pointer, &amount));
  cudaGraphNode_t b = addKernel(graph, {}, Kernel((void*)scale, &pointer, &amount));
  cudaGraphNode_t c = addKernel(graph, {a}, Kernel((void*)addTo, &pointer, &amount));
  CHECK(cudaGraphAddDependencies(graph, &b, &c, nullptr, 1));
  size_t nodes = 0, roots = 0, edges = 0;
  CHECK(cudaGraphGetNodes(graph, nullptr, &nodes));
  CHECK(cudaGraphGetRootNodes(graph, nullptr, &roots));
  CHECK(cudaGraphGetEdges(graph, nullptr, nullptr, nullptr, &edges));
  bool ok = EXPECT(nodes == 3) & EXPECT(roots == 2) & EXPECT(edges == 2);
  cudaGraphNode_t before[2] = {};
  size_t number = 2;
  CHECK(cudaGraphNodeGetDependencies(c, before, nullptr, &number));
  ok &= EXPECT(number == 2) & EXPECT(before[0] == a) & EXPECT(before[1] == b);
  CHECK(cudaGraphRemoveDependencies(graph, &a, &c, nullptr, 1));
  CHECK(cudaGraphNodeGetDependentNodes(a, nullptr, nullptr, &number));
  ok &= EXPECT(number == 0);
  cudaGraphNodeType type;
  CHECK(cudaGraphNodeGetType(c, &type));
  ok &= EXPECT(type == cudaGraphNodeTypeKernel);
  cudaKernelNodeParams params;
  CHECK(cudaGraphKernelNodeGetParams(c, &params));
  ok &= EXPECT(params.func == (void*)addTo) & EXPECT(params.gridDim.x == unsigned(blocks)) &
        EXPECT(*static_cast<int**>(params.kernelParams[0]) == pointer) & EXPECT(*static_cast<int*>(params.kernelParams[1]) == 1);
  CHECK(cudaGraphDestroyNode(a));
  CHECK(cudaGraphGetNodes(graph, nullptr, &nodes));
  ok &= EXPECT(nodes == 2);

  // Invalid uses, each with CUDA's error; the graph still works.
  cudaGraphNode_t node, foreign[] = {a};
  ok &= EXPECT_ERROR(cudaGraphAddEmptyNode(&node, graph, foreign, 1), cudaErrorInvalidValue);
  cudaGraphNode_t twice[] = {b, b};
  ok &= EXPECT_ERROR(cudaGraphAddEmptyNode(&node, graph, twice, 2), cudaErrorInvalidValue);
  ok &= EXPECT_ERROR(cudaGraphAddDependencies(graph, &b, &c, nullptr, 1), cudaErrorInvalidValue);
  Kernel tooLarge((void*)addTo, &pointer, &amount);
  tooLarge.params.blockDim = dim3(4096);
  ok &= EXPECT_ERROR(cudaGraphAddKernelNode(&node, graph, nullptr, 0, &tooLarge.params), cudaErrorInvalidValue);
  CHECK(cudaGraphAddDependencies(graph, &c, &b, nullptr, 1));
  cudaGraphExec_t exec = nullptr;
  ok &= EXPECT_ERROR(cudaGraphInstantiate(&exec, graph, 0), cudaErrorInvalidValue);  // a cycle
  cudaGetLastError();
  CHECK(cudaGraphDestroy(graph));
  ok &= EXPECT_ERROR(cudaGraphDestroy(graph), cudaErrorInvalidValue);
  ok &= EXPECT_ERROR(cudaGraphInstantiate(&exec, graph, 0), cudaErrorInvalidValue);
  cudaGetLastError();
  return ok;
}

int main() {
  bool ok = launches();
  ok &= children();
  ok &= introspection();
  return verdict("graphs", ok);
}
