// Graphs that are moved into a parent as a child, not cloned (cudaGraphChildGraphOwnershipMove): they keep their handles and nodes, may
// allocate memory, and are destroyed with the parent.
#include "in-session.h"
#include "kernel-node.h"
#include "memory-node.h"

// Shows which kernels have run, and in which order.
__global__ void append(int* digits, int digit) { *digits = 10 * *digits + digit; }
__global__ void store(int* to, int value) { *to = value; }
__global__ void copyWord(int* to, const int* from) { *to = *from; }

namespace {

cudaGraph_t newGraph() {
  cudaGraph_t graph;
  CHECK(cudaGraphCreate(&graph, 0));
  return graph;
}

cudaError_t tryMove(cudaGraphNode_t* node, cudaGraph_t parent, cudaGraphNode_t before, cudaGraph_t child) {
  cudaGraphNodeParams params{};
  params.type = cudaGraphNodeTypeGraph;
  params.graph.graph = child;
  params.graph.ownership = cudaGraphChildGraphOwnershipMove;
  return cudaGraphAddNode(node, parent, &before, nullptr, before == nullptr ? 0 : 1, &params);
}
cudaGraphNode_t move(cudaGraph_t parent, cudaGraphNode_t before, cudaGraph_t child) {
  cudaGraphNode_t node;
  CHECK(tryMove(&node, parent, before, child));
  return node;
}

cudaGraphExec_t instantiated(cudaGraph_t graph) {
  cudaGraphExec_t exec;
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  return exec;
}

// Launches the graph and checks the result.
bool gives(cudaGraphExec_t exec, DeviceArray<int>& word, int wanted) {
  word.upload({0});
  CHECK(cudaGraphLaunch(exec, cudaStreamLegacy));
  CHECK(cudaStreamSynchronize(cudaStreamLegacy));
  return same("left by a launch", word.download(), {wanted});
}

cudaKernelNodeParams appends(void** arguments) {
  cudaKernelNodeParams params{};
  params.func = reinterpret_cast<void*>(append);
  params.gridDim = params.blockDim = dim3(1);
  params.kernelParams = arguments;
  return params;
}

// ---- The child's handle and those of its nodes remain valid in the parent.
struct Moved {
  Moved() {
    auto before = addKernel<int*, int>(parent, {}, append, digits, 1);
    first = addKernel<int*, int>(child, {}, append, digits, 2);
    node = move(parent, before, child);
    last = addKernel<int*, int>(child, {first}, append, digits, 3);
    addKernel<int*, int>(parent, {node}, append, digits, 9);
    exec = instantiated(parent);
  }
  bool isTheParents() {
    cudaGraph_t got = nullptr;
    size_t nodes = 0;
    CHECK(cudaGraphChildGraphNodeGetGraph(node, &got));
    CHECK(cudaGraphGetNodes(parent, nullptr, &nodes));
    bool ok = EXPECT(got == child) & EXPECT(nodes == 3);
    return ok & gives(exec, digits, 1239);
  }
  // A node that is added later is part of later instantiations.
  bool grows() {
    last = addKernel<int*, int>(child, {last}, append, digits, 4);
    bool ok = gives(exec, digits, 1239);
    CHECK(cudaGraphExecDestroy(exec));
    exec = instantiated(parent);
    return ok & gives(exec, digits, 12349);
  }
  // With the node's earlier handle: in the executable graph, then in the graph.
  bool changes() {
    int* to = digits;
    int digit = 5;
    void* arguments[] = {&to, &digit};
    cudaKernelNodeParams params = appends(arguments);
    CHECK(cudaGraphExecKernelNodeSetParams(exec, first, &params));
    bool ok = gives(exec, digits, 15349);
    digit = 6;
    CHECK(cudaGraphKernelNodeSetParams(first, &params));
    ok &= gives(exec, digits, 15349);
    cudaGraphExecUpdateResultInfo info{};
    CHECK(cudaGraphExecUpdate(exec, parent, &info));
    return ok & gives(exec, digits, 16349);
  }
  void end() {
    CHECK(cudaGraphExecDestroy(exec));
    CHECK(cudaGraphDestroy(parent));
  }
  DeviceArray<int> digits{1};
  cudaGraph_t parent = newGraph(), child = newGraph();
  cudaGraphNode_t node, first, last;
  cudaGraphExec_t exec;
};

// ---- A child that allocates memory, uses it and frees it; a session does not support moving it (docs/graphs.md).
cudaGraph_t allocating(int* out, int value) {
  cudaGraph_t graph = newGraph();
  cudaMemAllocNodeParams memory = memoryNode(4096);
  cudaGraphNode_t allocated, freed;
  CHECK(cudaGraphAddMemAllocNode(&allocated, graph, nullptr, 0, &memory));
  auto* place = static_cast<int*>(memory.dptr);
  auto stored = addKernel<int*, int>(graph, {allocated}, store, place, value);
  auto copied = addKernel<int*, const int*>(graph, {stored}, copyWord, out, place);
  CHECK(cudaGraphAddMemFreeNode(&freed, graph, &copied, 1, place));
  return graph;
}

struct Allocating {
  Allocating() {
    cudaGraph_t parent = newGraph();
    cudaGraphNode_t node;
    const cudaError_t moved = tryMove(&node, parent, nullptr, allocating(out, 7));
    if (inSession && moved == cudaErrorNotSupported) return;
    CHECK(moved);
    addKernel<int*, int>(parent, {node}, append, out, 8);
    exec = instantiated(parent);
    CHECK(cudaGraphDestroy(parent));
  }
  bool runs() {
    if (exec == nullptr) return true;
    bool ok = gives(exec, out, 78);
    return ok & gives(exec, out, 78);
  }
  DeviceArray<int> out{1};
  cudaGraphExec_t exec = nullptr;
};

// A child of a child, each moved.
bool nests() {
  DeviceArray<int> digits(1);
  cudaGraph_t parent = newGraph(), child = newGraph(), inner = newGraph();
  auto first = addKernel<int*, int>(child, {}, append, digits, 1);
  move(child, first, inner);
  move(parent, nullptr, child);
  addKernel<int*, int>(inner, {}, append, digits, 2);
  cudaGraphExec_t exec = instantiated(parent);
  CHECK(cudaGraphDestroy(parent));
  bool ok = gives(exec, digits, 12);
  CHECK(cudaGraphExecDestroy(exec));
  return ok;
}

// A user object of the child is released with the parent, or with the last executable graph of the parent.
bool endsWithParent(bool isInstantiated) {
  static std::atomic<int> ended{0};
  ended = 0;
  auto end = [](void* count) { ++*static_cast<std::atomic<int>*>(count); };
  DeviceArray<int> digits(1);
  cudaUserObject_t object;
  cudaGraph_t parent = newGraph(), child = newGraph();
  CHECK(cudaUserObjectCreate(&object, &ended, end, 1, cudaUserObjectNoDestructorSync));
  CHECK(cudaGraphRetainUserObject(child, object, 1, cudaGraphUserObjectMove));
  addKernel<int*, int>(child, {}, append, digits, 3);
  move(parent, nullptr, child);
  bool ok = EXPECT(ended == 0);
  cudaGraphExec_t exec = isInstantiated ? instantiated(parent) : nullptr;
  CHECK(cudaGraphDestroy(parent));
  if (isInstantiated) {
    usleep(20'000);
    ok &= EXPECT(ended == 0);
    ok &= gives(exec, digits, 3);
    CHECK(cudaGraphExecDestroy(exec));
  }
  for (int polls = 0; polls < 10'000 && ended == 0; ++polls) usleep(1000);  // a CUDA thread calls the destructor
  return ok & EXPECT(ended == 1);
}

bool isRefused(const char* what, cudaError_t error) {
  cudaGetLastError();
  if (error == cudaSuccess) std::fprintf(stderr, "%s works\n", what);
  return error != cudaSuccess;
}
#define REFUSED(call) isRefused(#call, call)

// Calls that driver_types.h forbids afterwards, without naming their errors.
bool isBound() {
  DeviceArray<int> out(1);
  cudaGraph_t parent = newGraph(), child = newGraph(), other = newGraph(), alike = newGraph();
  addKernel<int*, int>(child, {}, append, out, 1);
  addKernel<int*, int>(alike, {}, append, out, 2);
  move(parent, nullptr, child);
  cudaGraphExec_t exec = instantiated(alike), none = nullptr;
  cudaGraphNode_t node;
  cudaGraphExecUpdateResultInfo info{};
  cudaMemAllocNodeParams memory = memoryNode(4096);
  bool ok = REFUSED(cudaGraphInstantiate(&none, child, 0));
  ok &= REFUSED(cudaGraphExecUpdate(exec, child, &info));
  ok &= REFUSED(tryMove(&node, other, nullptr, child));
  ok &= REFUSED(cudaGraphAddChildGraphNode(&node, other, nullptr, 0, child));
  ok &= REFUSED(cudaGraphAddMemAllocNode(&node, child, nullptr, 0, &memory));
  ok &= REFUSED(cudaGraphDestroy(child));
  ok &= gives(exec, out, 2);
  CHECK(cudaGraphExecDestroy(exec));
  exec = instantiated(parent);  // as if none of the calls had been made
  ok &= gives(exec, out, 1);
  CHECK(cudaGraphExecDestroy(exec));
  for (cudaGraph_t graph : {parent, other, alike}) CHECK(cudaGraphDestroy(graph));
  return ok;
}

// Memory nodes are allowed only in a child that is moved, and cannot be added afterwards.
bool boundsMemory() {
  cudaGraph_t parent = newGraph(), child = newGraph();
  cudaGraphNode_t allocated, node;
  cudaMemAllocNodeParams memory = memoryNode(4096);
  CHECK(cudaGraphAddMemAllocNode(&allocated, child, nullptr, 0, &memory));
  bool ok = REFUSED(cudaGraphAddChildGraphNode(&node, parent, nullptr, 0, child));
  if (inSession) return ok & REFUSED(tryMove(&node, parent, nullptr, child));
  move(parent, nullptr, child);
  ok &= REFUSED(cudaGraphAddMemFreeNode(&node, child, &allocated, 1, memory.dptr));
  CHECK(cudaGraphDestroy(parent));
  return ok;
}

}  // namespace

int main() {
  Moved moved;
  Allocating memory;
  bool ok = moved.isTheParents();
  ok &= memory.runs();
  pausePoint();
  ok &= memory.runs();
  ok &= moved.isTheParents();
  ok &= moved.grows();
  ok &= moved.changes();
  moved.end();
  ok &= nests();
  ok &= endsWithParent(false);
  ok &= endsWithParent(true);
  ok &= isBound();
  ok &= boundsMemory();
  return verdict("child-moved", ok);
}
