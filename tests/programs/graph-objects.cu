// User objects of executable graphs that change: an executable graph that is updated from another graph, or whose child graph is set, holds
// the references of that graph from then on, and releases its former ones when earlier launches have run.
#include "await-flag.h"
#include "kernel-node.h"

// Shows which kernels have run, and in which order.
__global__ void append(int* digits, int digit) { *digits = 10 * *digits + digit; }

namespace {

// A user object. A CUDA thread destroys it some time after the last reference was released.
class Object {
 public:
  Object() {
    auto destroy = [](void* count) { ++*static_cast<std::atomic<int>*>(count); };
    CHECK(cudaUserObjectCreate(&object, &destroyed, destroy, 1, cudaUserObjectNoDestructorSync));
  }
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;
  // Moves the program's only reference to the graph.
  void giveTo(cudaGraph_t graph) const { CHECK(cudaGraphRetainUserObject(graph, object, 1, cudaGraphUserObjectMove)); }
  void shareWith(cudaGraph_t graph) const { CHECK(cudaGraphRetainUserObject(graph, object, 1, 0)); }
  bool lives() const { return destroyed == 0; }
  bool ends() const {
    for (int polls = 0; polls < 10'000 && destroyed == 0; ++polls) usleep(1000);
    return destroyed == 1;
  }

 private:
  cudaUserObject_t object = nullptr;
  std::atomic<int> destroyed{0};
};

// None has been destroyed, nor is within the time that a CUDA thread needs.
bool live(std::initializer_list<const Object*> objects) {
  usleep(20'000);
  for (auto* object : objects)
    if (!object->lives()) return false;
  return true;
}

// A stream behind a host function, and the digits that its kernels have appended.
class Held {
 public:
  Held() { CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking)); }
  ~Held() { CHECK(cudaStreamDestroy(stream)); }
  void hold() {
    isOpen = false;
    CHECK(cudaLaunchHostFunc(stream, awaitFlag, &isOpen));
  }
  void launch(cudaGraphExec_t exec) const { CHECK(cudaGraphLaunch(exec, stream)); }
  // The digits appended since the last call.
  bool gives(int wanted) {
    isOpen = true;
    CHECK(cudaStreamSynchronize(stream));
    const bool ok = same("digits", digits.download(), {wanted});
    digits.upload({0});
    return ok;
  }
  operator int*() const { return digits; }

 private:
  cudaStream_t stream = nullptr;
  DeviceArray<int> digits{std::vector<int>{0}};
  std::atomic<bool> isOpen{false};
};

cudaGraph_t appending(int* digits, int digit) {
  cudaGraph_t graph;
  CHECK(cudaGraphCreate(&graph, 0));
  addKernel<int*, int>(graph, {}, append, digits, digit);
  return graph;
}
cudaGraph_t appending(int* digits, int digit, const Object& object) {
  cudaGraph_t graph = appending(digits, digit);
  object.giveTo(graph);
  return graph;
}

cudaGraphExec_t instantiated(cudaGraph_t graph) {
  cudaGraphExec_t exec;
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  return exec;
}

void updateBy(cudaGraphExec_t exec, cudaGraph_t graph) {
  cudaGraphExecUpdateResultInfo info{};
  CHECK(cudaGraphExecUpdate(exec, graph, &info));
}

// ---- Updated from a graph.
struct Updated {
  Updated() {
    cudaGraph_t graph = appending(held, 1, first);
    exec = instantiated(graph);
    CHECK(cudaGraphDestroy(graph));
  }
  // With a pending launch of the earlier state.
  bool keepsForLaunches() {
    cudaGraph_t graph = appending(held, 2, second);
    held.hold();
    held.launch(exec);
    updateBy(exec, graph);
    CHECK(cudaGraphDestroy(graph));
    held.launch(exec);
    bool ok = EXPECT(live({&first, &second}));
    ok &= held.gives(12);
    ok &= EXPECT(first.ends());
    return ok & EXPECT(live({&second}));
  }
  // Without pending launches.
  bool givesUp() {
    cudaGraph_t graph = appending(held, 3, third);
    updateBy(exec, graph);
    CHECK(cudaGraphDestroy(graph));
    bool ok = EXPECT(second.ends());
    ok &= EXPECT(live({&third}));
    held.launch(exec);
    return ok & held.gives(3);
  }
  bool refuses() {
    Object others;
    cudaGraph_t graph = appending(held, 4, others);
    addKernel<int*, int>(graph, {}, append, held, 4);
    cudaGraphExecUpdateResultInfo info{};
    bool ok = EXPECT_ERROR(cudaGraphExecUpdate(exec, graph, &info), cudaErrorGraphExecUpdateFailure);
    cudaGetLastError();
    CHECK(cudaGraphDestroy(graph));
    ok &= EXPECT(others.ends());
    ok &= EXPECT(live({&third}));
    held.launch(exec);
    return ok & held.gives(3);
  }
  bool endsWithout() {
    cudaGraph_t graph = appending(held, 5);
    updateBy(exec, graph);
    CHECK(cudaGraphDestroy(graph));
    bool ok = EXPECT(third.ends());
    held.launch(exec);
    ok &= held.gives(5);
    CHECK(cudaGraphExecDestroy(exec));
    return ok;
  }
  Held held;
  Object first, second, third;
  cudaGraphExec_t exec = nullptr;
};

// From the graph that it was instantiated from, and from another one with the same object.
bool keepsTheSame() {
  Held held;
  Object object;
  cudaGraph_t first = appending(held, 1), second = appending(held, 2);
  object.shareWith(first);
  object.giveTo(second);
  cudaGraphExec_t exec = instantiated(first);
  updateBy(exec, first);
  updateBy(exec, second);
  held.launch(exec);
  updateBy(exec, first);
  for (cudaGraph_t graph : {first, second}) CHECK(cudaGraphDestroy(graph));
  held.launch(exec);
  bool ok = held.gives(21);
  ok &= EXPECT(live({&object}));
  CHECK(cudaGraphExecDestroy(exec));
  return ok & EXPECT(object.ends());
}

// With a launch pending after an update.
bool endsBehindLaunches() {
  Held held;
  Object first, second;
  cudaGraph_t one = appending(held, 1, first), two = appending(held, 2, second);
  cudaGraphExec_t exec = instantiated(one);
  held.hold();
  held.launch(exec);
  updateBy(exec, two);
  held.launch(exec);
  for (cudaGraph_t graph : {one, two}) CHECK(cudaGraphDestroy(graph));
  CHECK(cudaGraphExecDestroy(exec));
  bool ok = EXPECT(live({&first, &second}));
  ok &= held.gives(12);
  ok &= EXPECT(first.ends());
  return ok & EXPECT(second.ends());
}

// ---- A graph with a child graph that has a child graph.
cudaGraphNode_t addChild(cudaGraph_t graph, cudaGraphNode_t before, cudaGraph_t child) {
  cudaGraphNode_t node;
  CHECK(cudaGraphAddChildGraphNode(&node, graph, &before, 1, child));
  CHECK(cudaGraphDestroy(child));  // the node has a clone with its own references
  return node;
}

struct Family {
  struct Objects {
    Object outer, inner;
  };
  // A kernel at each level, followed by the child.
  cudaGraph_t child(int digit, const Objects& objects) const {
    cudaGraph_t graph;
    CHECK(cudaGraphCreate(&graph, 0));
    auto kernel = addKernel<int*, int>(graph, {}, append, held, digit);
    addChild(graph, kernel, appending(held, digit + 1, objects.inner));
    objects.outer.giveTo(graph);
    return graph;
  }
  cudaGraph_t parent(int digit, const Object& own, const Objects& objects, cudaGraphNode_t& node) const {
    cudaGraph_t graph;
    CHECK(cudaGraphCreate(&graph, 0));
    auto kernel = addKernel<int*, int>(graph, {}, append, held, digit);
    node = addChild(graph, kernel, child(digit + 1, objects));
    own.giveTo(graph);
    return graph;
  }
  // The node of the inner child.
  static cudaGraphNode_t innerOf(cudaGraphNode_t outer) {
    cudaGraph_t graph;
    cudaGraphNode_t nodes[2];
    size_t count = 2;
    CHECK(cudaGraphChildGraphNodeGetGraph(outer, &graph));
    CHECK(cudaGraphGetNodes(graph, nodes, &count));
    cudaGraphNodeType type;
    CHECK(cudaGraphNodeGetType(nodes[0], &type));
    return nodes[type == cudaGraphNodeTypeGraph ? 0 : 1];
  }
  void set(cudaGraphNode_t node, cudaGraph_t graph) const {
    CHECK(cudaGraphExecChildGraphNodeSetParams(exec, node, graph));
    CHECK(cudaGraphDestroy(graph));
  }
  // Sets the child's graph, then the inner child's, each while a launch is pending.
  bool check() {
    cudaGraphNode_t node;
    cudaGraph_t graph = parent(1, own, first, node);
    exec = instantiated(graph);
    cudaGraph_t other = child(4, second), innermost = appending(held, 6, third);
    held.hold();
    held.launch(exec);
    set(node, other);
    held.launch(exec);
    set(innerOf(node), innermost);
    held.launch(exec);
    CHECK(cudaGraphDestroy(graph));
    bool ok = EXPECT(live({&own, &first.outer, &first.inner, &second.outer, &second.inner, &third}));
    ok &= held.gives(123145146);
    ok &= EXPECT(first.outer.ends());
    ok &= EXPECT(first.inner.ends());
    ok &= EXPECT(second.inner.ends());
    return ok & EXPECT(live({&own, &second.outer, &third}));
  }
  bool checkAgain() {
    Object others;
    Objects last;
    cudaGraphNode_t node;
    held.launch(exec);
    bool ok = held.gives(146);
    cudaGraph_t graph = parent(7, others, last, node);
    updateBy(exec, graph);
    CHECK(cudaGraphDestroy(graph));
    for (auto* object : {&own, &second.outer, &third}) ok &= EXPECT(object->ends());
    ok &= EXPECT(live({&others, &last.outer, &last.inner}));
    held.launch(exec);
    ok &= held.gives(789);
    CHECK(cudaGraphExecDestroy(exec));
    for (auto* object : {&others, &last.outer, &last.inner}) ok &= EXPECT(object->ends());
    return ok;
  }
  Held held;
  Object own, third;
  Objects first, second;
  cudaGraphExec_t exec = nullptr;
};

}  // namespace

int main() {
  alarm(60);
  loadKernel(append);
  Updated updated;
  Family family;
  bool ok = updated.keepsForLaunches();
  ok &= family.check();
  pausePoint();
  ok &= updated.givesUp();
  ok &= updated.refuses();
  ok &= updated.endsWithout();
  ok &= family.checkAgain();
  ok &= keepsTheSame();
  ok &= endsBehindLaunches();
  return verdict("graph-objects", ok);
}
