// Conditional nodes of graphs: bodies that run if a kernel says so, while it says so, or selected by its value; nested; made node by node
// or captured; launched again after a pause.
#include "kernel-node.h"

using Handle = cudaGraphConditionalHandle;

__global__ void choose(Handle handle, const unsigned* value) { cudaGraphSetConditional(handle, *value); }
__global__ void add(unsigned* to, unsigned value) { *to += value; }
__global__ void countDown(Handle handle, unsigned* left) { cudaGraphSetConditional(handle, --*left); }

__global__ void isOdd(Handle handle, const unsigned* counter) { cudaGraphSetConditional(handle, *counter % 2); }

namespace {

// A word that the host reads and writes while no graph runs.
unsigned* word(unsigned value = 0) {
  unsigned* made = nullptr;
  CHECK(cudaMallocHost(&made, sizeof *made));
  *made = value;
  return made;
}

class Graph {
 public:
  Graph() { CHECK(cudaGraphCreate(&graph, 0)); }
  ~Graph() {
    if (executable != nullptr) CHECK(cudaGraphExecDestroy(executable));
    CHECK(cudaGraphDestroy(graph));
  }
  operator cudaGraph_t() const { return graph; }
  void run() {
    if (executable == nullptr) CHECK(cudaGraphInstantiate(&executable, graph));
    CHECK(cudaGraphLaunch(executable, nullptr));
    CHECK(cudaStreamSynchronize(nullptr));
  }

 private:
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
};

Handle condition(cudaGraph_t graph, unsigned value = 0, unsigned flags = 0) {
  Handle made = 0;
  CHECK(cudaGraphConditionalHandleCreate(&made, graph, value, flags));
  return made;
}

cudaError_t tryConditional(cudaGraphNode_t* node, cudaGraph_t graph, cudaGraphNode_t before, Handle handle,
                           cudaGraphConditionalNodeType type, unsigned size, cudaGraph_t** bodies = nullptr) {
  cudaGraphNodeParams params{};
  params.type = cudaGraphNodeTypeConditional;
  params.conditional.handle = handle;
  params.conditional.type = type;
  params.conditional.size = size;
  cudaError_t error = cudaGraphAddNode(node, graph, &before, nullptr, before == nullptr ? 0 : 1, &params);
  if (bodies != nullptr) *bodies = params.conditional.phGraph_out;
  return error;
}

cudaGraph_t* conditional(cudaGraph_t graph, cudaGraphNode_t before, Handle handle, cudaGraphConditionalNodeType type,
                         unsigned size, cudaGraphNode_t* made = nullptr) {
  cudaGraphNode_t node = nullptr;
  cudaGraph_t* bodies = nullptr;
  CHECK(tryConditional(&node, graph, before, handle, type, size, &bodies));
  if (made != nullptr) *made = node;
  return bodies;
}

// A kernel's value selects one of two bodies; a later node runs after either.
struct Choice {
  Choice() {
    Handle handle = condition(graph);
    auto first = addKernel<Handle, const unsigned*>(graph, {}, choose, handle, value);
    cudaGraphNode_t node = nullptr;
    cudaGraph_t* bodies = conditional(graph, first, handle, cudaGraphCondTypeIf, 2, &node);
    addKernel(bodies[0], {}, add, sum, 1u);
    addKernel(bodies[1], {}, add, sum, 100u);
    addKernel(graph, {node}, add, sum, 10000u);
  }
  bool check() {
    *sum = 0;
    for (unsigned each : {1u, 0u, 7u}) {
      *value = each;
      graph.run();
    }
    return EXPECT(*sum == 30102);
  }
  Graph graph;
  unsigned *value = word(), *sum = word();
};

// A captured body that runs as often as a word says: kernels, a fill, a copy and a child graph in each iteration.
struct Loop {
  Loop() {
    Handle handle = condition(graph, 1, cudaGraphCondAssignDefault);
    cudaGraph_t body = *conditional(graph, nullptr, handle, cudaGraphCondTypeWhile, 1);
    CHECK(cudaMalloc(&device, 2 * sizeof *device));
    Graph child;
    addKernel(child, {}, add, rounds, 1u);
    cudaStream_t stream;
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaStreamBeginCaptureToGraph(stream, body, nullptr, nullptr, 0, cudaStreamCaptureModeGlobal));
    CHECK(cudaMemsetAsync(device, 0, 2 * sizeof *device, stream));
    add<<<1, 1, 0, stream>>>(device, 5);
    CHECK(cudaMemcpyAsync(device + 1, device, sizeof *device, cudaMemcpyDeviceToDevice, stream));
    CHECK(cudaMemcpyAsync(seen, device + 1, sizeof *device, cudaMemcpyDeviceToHost, stream));
    countDown<<<1, 1, 0, stream>>>(handle, left);
    cudaGraph_t captured = nullptr;
    CHECK(cudaStreamEndCapture(stream, &captured));
    EXPECT(captured == body);
    CHECK(cudaStreamDestroy(stream));
    cudaGraphNode_t node;
    CHECK(cudaGraphAddChildGraphNode(&node, body, nullptr, 0, child));
  }
  ~Loop() { CHECK(cudaFree(device)); }
  bool check() {
    *rounds = *seen = 0;
    for (unsigned times : {5u, 1u}) {
      *left = times;
      graph.run();
    }
    return EXPECT(*rounds == 6) & EXPECT(*seen == 5) & EXPECT(*left == 0);
  }
  Graph graph;
  unsigned *left = word(), *rounds = word(), *seen = word(), *device = nullptr;
};

// One of three bodies, or none.
struct Switch {
  Switch() {
    Handle handle = condition(graph);
    auto first = addKernel<Handle, const unsigned*>(graph, {}, choose, handle, value);
    cudaGraph_t* bodies = conditional(graph, first, handle, cudaGraphCondTypeSwitch, 3);
    for (unsigned i = 0, amount = 1; i < 3; ++i, amount *= 10) addKernel(bodies[i], {}, add, sum, amount);
  }
  bool check() {
    *sum = 0;
    for (unsigned each : {2u, 0u, 2u, 3u, 1u, 999u}) {
      *value = each;
      graph.run();
    }
    return EXPECT(*sum == 211);
  }
  Graph graph;
  unsigned *value = word(), *sum = word();
};

// A condition in the body of a loop: true in every other iteration.
struct Nested {
  Nested() {
    Handle loops = condition(graph, 1, cudaGraphCondAssignDefault), decides = condition(graph);
    cudaGraph_t body = *conditional(graph, nullptr, loops, cudaGraphCondTypeWhile, 1);
    auto asked = addKernel<Handle, const unsigned*>(body, {}, isOdd, decides, left);
    cudaGraphNode_t node = nullptr;
    cudaGraph_t* inner = conditional(body, asked, decides, cudaGraphCondTypeIf, 1, &node);
    addKernel(*inner, {}, add, sum, 1u);
    addKernel(body, {node}, countDown, loops, left);
  }
  bool check() {
    *sum = 0;
    *left = 7;
    graph.run();
    return EXPECT(*sum == 4) & EXPECT(*left == 0);
  }
  Graph graph;
  unsigned *left = word(), *sum = word();
};

// Errors that the runtime's manual specifies, and those that an H200's driver returns (580.159).
bool refusals() {
  Graph graph, other;
  Handle handle = 0, second = 0;
  cudaGraphNode_t node = nullptr;
  cudaGraph_t copy = nullptr;
  bool ok = EXPECT_ERROR(cudaGraphConditionalHandleCreate(&handle, nullptr, 0, 0), cudaErrorInvalidValue);
  ok &= EXPECT_ERROR(cudaGraphConditionalHandleCreate(&handle, graph, 0, 2), cudaErrorInvalidValue);
  handle = condition(graph);
  second = condition(graph);
  ok &= EXPECT(handle == 1) & EXPECT(second == 2) & EXPECT(condition(other) == 1);
  ok &= EXPECT_ERROR(tryConditional(&node, graph, nullptr, 0, cudaGraphCondTypeIf, 1), cudaErrorInvalidValue);
  ok &= EXPECT_ERROR(tryConditional(&node, graph, nullptr, handle, cudaGraphCondTypeIf, 0), cudaErrorInvalidValue);
  ok &= EXPECT_ERROR(tryConditional(&node, graph, nullptr, handle, cudaGraphCondTypeIf, 3), cudaErrorInvalidValue);
  ok &= EXPECT_ERROR(tryConditional(&node, graph, nullptr, handle, cudaGraphCondTypeWhile, 2), cudaErrorInvalidValue);
  ok &= EXPECT_ERROR(tryConditional(&node, graph, nullptr, 99, cudaGraphCondTypeIf, 1), cudaErrorInvalidValue);
  cudaGraph_t body = *conditional(graph, nullptr, handle, cudaGraphCondTypeIf, 1);
  ok &= EXPECT_ERROR(tryConditional(&node, graph, nullptr, handle, cudaGraphCondTypeIf, 1), cudaErrorInvalidValue);
  ok &= EXPECT_ERROR(cudaGraphClone(&copy, graph), cudaErrorNotSupported);
  ok &= EXPECT_ERROR(cudaGraphDestroy(body), cudaErrorInvalidValue);
  Graph parent;
  ok &= EXPECT(cudaGraphAddChildGraphNode(&node, parent, nullptr, 0, graph) != cudaSuccess);
  ok &= EXPECT_ERROR(cudaGraphClone(&copy, body), cudaErrorNotSupported);
  cudaGraphExec_t executable = nullptr, another = nullptr;
  ok &= EXPECT_ERROR(cudaGraphInstantiate(&executable, body), cudaErrorNotSupported);
  Graph hosted;  // a body accepts such a node, but cannot be instantiated with it
  cudaHostNodeParams host{[](void*) {}, nullptr};
  CHECK(cudaGraphAddHostNode(&node, *conditional(hosted, nullptr, condition(hosted), cudaGraphCondTypeIf, 1), nullptr, 0, &host));
  ok &= EXPECT(cudaGraphInstantiate(&executable, hosted) != cudaSuccess);

  Graph once;  // has one executable graph at a time, which it can update as long as bodies do not change
  unsigned* sum = word();
  *sum = 0;
  Handle always = condition(once, 1, cudaGraphCondAssignDefault);
  body = *conditional(once, nullptr, always, cudaGraphCondTypeIf, 1);
  addKernel(body, {}, add, sum, 5u);
  cudaGraphExecUpdateResultInfo info{};
  CHECK(cudaGraphInstantiate(&executable, once));
  ok &= EXPECT_ERROR(cudaGraphInstantiate(&another, once), cudaErrorNotSupported);
  ok &= EXPECT_ERROR(cudaGraphExecUpdate(executable, once, &info), cudaSuccess);
  CHECK(cudaGraphLaunch(executable, nullptr));
  CHECK(cudaDeviceSynchronize());
  ok &= EXPECT(*sum == 5);
  CHECK(cudaGraphExecDestroy(executable));
  cudaGetLastError();
  return ok;
}

}  // namespace

int main() {
  Choice choice;
  Loop loop;
  Switch picks;
  Nested nested;
  auto check = [&] { return choice.check() & loop.check() & picks.check() & nested.check(); };
  bool ok = check() & refusals();
  pausePoint();
  return verdict("conditional-graphs", ok & check());
}
