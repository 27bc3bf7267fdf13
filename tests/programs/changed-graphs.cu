// Changes of executable graphs. Some need other nodes than were instantiated: a copy between the device and pinned memory becomes one of
// pageable memory or the reverse, bodies of conditional nodes change, copies of pageable memory are disabled, kernels get other attributes.
// Also changes of memory nodes, functions of kernels and copies of arrays. Launches made before a change do what the graph did then, in
// whichever stream they are.
#include "kernel-node.h"
#include "memory-node.h"

using Handle = cudaGraphConditionalHandle;

__global__ void add(unsigned* to, unsigned value) { *to += value; }
__global__ void addTwice(unsigned* to, unsigned value) { *to += 2 * value; }
__global__ void set(unsigned* to, unsigned value) { *to = value; }

namespace {

constexpr size_t bytes = sizeof(unsigned);

cudaGraph_t graphOf() {
  cudaGraph_t graph;
  CHECK(cudaGraphCreate(&graph, 0));
  return graph;
}

// ---- A copy in, an addition of 1, a copy out: between the device and host buffers that change.
struct Copies {
  Copies() {
    CHECK(cudaMallocHost(&pinned, 2 * bytes));
    pinned[0] = 10, pageable[0] = 100, pinned[1] = pageable[1] = 0;
    CHECK(cudaGraphAddMemcpyNode1D(&in, graph, nullptr, 0, value, pinned, bytes, cudaMemcpyHostToDevice));
    cudaGraphNode_t node = addKernel<unsigned*, unsigned>(graph, {in}, add, value, 1u);
    CHECK(cudaGraphAddMemcpyNode1D(&out, graph, &node, 1, pinned + 1, value, bytes, cudaMemcpyDeviceToHost));
    CHECK(cudaGraphInstantiate(&executable, graph, 0));
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
  }
  void setIn(unsigned* from) {
    CHECK(cudaGraphExecMemcpyNodeSetParams1D(executable, in, value, from, bytes, cudaMemcpyHostToDevice));
  }
  void setOut(unsigned* to) { CHECK(cudaGraphExecMemcpyNodeSetParams1D(executable, out, to, value, bytes, cudaMemcpyDeviceToHost)); }
  bool has(unsigned first, unsigned second) {
    CHECK(cudaDeviceSynchronize());
    return EXPECT(pinned[1] == first) & EXPECT(pageable[1] == second);
  }
  bool check() {
    CHECK(cudaGraphLaunch(executable, stream));
    setIn(pageable);  // the earlier launch still reads pinned memory
    setOut(pageable + 1);
    CHECK(cudaGraphLaunch(executable, other));
    bool ok = has(11, 101);
    setIn(pinned);
    CHECK(cudaGraphLaunch(executable, stream));
    ok &= has(11, 11);
    setOut(pinned + 1);
    setIn(pageable);
    return ok;  // from pageable to pinned memory
  }
  bool isLeftOut() {
    CHECK(cudaGraphNodeSetEnabled(executable, in, 0));
    CHECK(cudaGraphLaunch(executable, stream));
    bool ok = has(102, 11);
    CHECK(cudaGraphNodeSetEnabled(executable, in, 1));
    CHECK(cudaGraphLaunch(executable, stream));
    return ok & has(101, 11);
  }
  bool checkAgain() {
    pinned[1] = 0;
    CHECK(cudaGraphLaunch(executable, stream));
    bool ok = has(101, 11) & isLeftOut();
    setIn(pinned);
    pageable[1] = 0;
    return ok & check();
  }
  cudaGraph_t graph = graphOf();
  DeviceArray<unsigned> value{1};
  unsigned* pinned = nullptr;
  unsigned pageable[2];
  cudaGraphNode_t in, out;
  cudaGraphExec_t executable;
  cudaStream_t stream, other;
};

// ---- A body that adds. The node and another graph change the addend; the other graph also decides whether the body runs.
struct Body {
  struct One {
    One(unsigned* to, unsigned amount, unsigned runs) {
      Handle handle = 0;
      CHECK(cudaGraphConditionalHandleCreate(&handle, graph, runs, cudaGraphCondAssignDefault));
      cudaGraphNodeParams params{};
      params.type = cudaGraphNodeTypeConditional;
      params.conditional.handle = handle;
      params.conditional.type = cudaGraphCondTypeIf;
      params.conditional.size = 1;
      cudaGraphNode_t node;
      CHECK(cudaGraphAddNode(&node, graph, nullptr, nullptr, 0, &params));
      inner = addKernel<unsigned*, unsigned>(params.conditional.phGraph_out[0], {}, add, to, amount);
    }
    cudaGraph_t graph = graphOf();
    cudaGraphNode_t inner;
  };
  Body() { CHECK(cudaGraphInstantiate(&executable, first.graph, 0)); }
  bool adds(unsigned amount) {
    sum.upload({0});
    CHECK(cudaGraphLaunch(executable, nullptr));
    return same("sum", sum.download(), {amount});
  }
  void update(const One& with) {
    cudaGraphExecUpdateResultInfo info{};
    CHECK(cudaGraphExecUpdate(executable, with.graph, &info));
  }
  bool check() {
    update(first);
    bool ok = adds(1);
    update(second);
    ok &= adds(20);
    update(third);
    ok &= adds(0);
    update(second);
    return ok;
  }
  DeviceArray<unsigned> sum{1};
  One first{sum, 1, 1}, second{sum, 20, 1}, third{sum, 300, 0};
  cudaGraphExec_t executable;
};

// ---- Memory nodes, replaced by those of another graph; the kernel between them gets another function, another attribute, and another
// position in the order of the nodes.
struct MemoryNodes {
  struct One {
    One(unsigned* to, void (*kernel)(unsigned*, unsigned), unsigned amount, bool hasPriority) {
      cudaMemAllocNodeParams memory = memoryNode(4 * bytes);
      cudaGraphNode_t allocated, copied, freed;
      CHECK(cudaGraphAddMemAllocNode(&allocated, graph, nullptr, 0, &memory));
      auto* place = static_cast<unsigned*>(memory.dptr);
      // A fill cannot be updated to memory of another graph's nodes (conformance/owned-memory.cu).
      cudaGraphNode_t begun = addKernel<unsigned*, unsigned>(graph, {allocated}, set, place, 100u);
      cudaGraphNode_t added = addKernel<unsigned*, unsigned>(graph, {begun}, kernel, place, amount);
      cudaKernelNodeAttrValue priority{};
      priority.priority = -1;
      if (hasPriority) CHECK(cudaGraphKernelNodeSetAttribute(added, cudaLaunchAttributePriority, &priority));
      CHECK(cudaGraphAddMemcpyNode1D(&copied, graph, &added, 1, to, place, bytes, cudaMemcpyDeviceToDevice));
      CHECK(cudaGraphAddMemFreeNode(&freed, graph, &copied, 1, place));
    }
    cudaGraph_t graph = graphOf();
  };
  MemoryNodes() { CHECK(cudaGraphInstantiate(&executable, first.graph, 0)); }
  void update(const One& with) {
    cudaGraphExecUpdateResultInfo info{};
    CHECK(cudaGraphExecUpdate(executable, with.graph, &info));
  }
  bool has(unsigned value) {
    sum.upload({0});
    CHECK(cudaGraphLaunch(executable, nullptr));
    return same("copied from memory of a node", sum.download(), {value});
  }
  // The memory that it no longer uses can belong to another executable graph.
  bool isFree(const One& one, unsigned value) {
    cudaGraphExec_t other, busy;
    CHECK(cudaGraphInstantiate(&other, one.graph, 0));
    bool ok = EXPECT_ERROR(cudaGraphInstantiate(&busy, one.graph, 0), cudaErrorNotSupported);
    sum.upload({0});
    CHECK(cudaGraphLaunch(other, nullptr));
    ok &= same("in another graph", sum.download(), {value});
    CHECK(cudaGraphExecDestroy(other));
    return ok;
  }
  bool check() {
    update(first);
    bool ok = has(101);
    update(second);
    ok &= has(140) & isFree(first, 101);
    update(third);
    ok &= has(103) & isFree(second, 140);
    update(second);
    return ok;
  }
  DeviceArray<unsigned> sum{1};
  One first{sum, add, 1, false}, second{sum, addTwice, 20, true}, third{sum, add, 3, false};
  cudaGraphExec_t executable;
};

// ---- A row copied from an array, replaced by one from another array.
struct Arrays {
  Arrays() {
    cudaMemcpy3DParms params = rowOf(made(7), 0);
    CHECK(cudaGraphAddMemcpyNode(&node, graph, nullptr, 0, &params));
    CHECK(cudaGraphInstantiate(&executable, graph, 0));
    params = rowOf(made(70), 1);
    CHECK(cudaGraphExecMemcpyNodeSetParams(executable, node, &params));
  }
  static cudaArray_t made(unsigned first) {
    const cudaChannelFormatDesc format = cudaCreateChannelDesc<unsigned>();
    cudaArray_t array;
    unsigned values[] = {first, first + 1};
    CHECK(cudaMallocArray(&array, &format, 2, 1));
    CHECK(cudaMemcpy2DToArray(array, 0, 0, values, sizeof values, sizeof values, 1, cudaMemcpyHostToDevice));
    return array;
  }
  cudaMemcpy3DParms rowOf(cudaArray_t array, size_t x) {
    cudaMemcpy3DParms params{};
    params.srcArray = array;
    params.srcPos = make_cudaPos(x, 0, 0);
    params.dstPtr = make_cudaPitchedPtr(value, bytes, 1, 1);
    params.extent = make_cudaExtent(1, 1, 1);
    params.kind = cudaMemcpyDeviceToDevice;
    return params;
  }
  bool has(unsigned expected) {
    value.upload({0});
    CHECK(cudaGraphLaunch(executable, nullptr));
    return same("out of an array", value.download(), {expected});
  }
  cudaGraph_t graph = graphOf();
  DeviceArray<unsigned> value{1};
  cudaGraphNode_t node;
  cudaGraphExec_t executable;
};

}  // namespace

int main() {
  Copies copies;
  Body body;
  MemoryNodes memory;
  Arrays arrays;
  bool ok = copies.check() & body.check() & memory.check() & arrays.has(71);
  pausePoint();
  ok &= copies.checkAgain() & body.adds(20) & body.check() & memory.has(140) & memory.check() & arrays.has(71);
  return verdict("changed-graphs", ok);
}
