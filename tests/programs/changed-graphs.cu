// Changes of executable graphs that need other nodes than were instantiated: a copy between the device and pinned memory becomes one of
// pageable memory and the other way round, bodies of conditional nodes change, and copies of pageable memory are left out. Launches that
// were given before a change do what the graph did then, whichever stream they are in.
#include "kernel-node.h"

using Handle = cudaGraphConditionalHandle;

__global__ void add(unsigned* to, unsigned value) { *to += value; }

namespace {

constexpr size_t bytes = sizeof(unsigned);

cudaGraph_t graphOf() {
  cudaGraph_t graph;
  CHECK(cudaGraphCreate(&graph, 0));
  return graph;
}

// ---- In, an addition of 1, out: between the device and places of the host that change.
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
    setIn(pageable);  // the launch before still reads pinned memory
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

// ---- A body adds; what, is changed by the node and by another graph, which also says whether it runs.
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

}  // namespace

int main() {
  Copies copies;
  Body body;
  bool ok = copies.check() & body.check();
  pausePoint();
  ok &= copies.checkAgain() & body.adds(20) & body.check();
  return verdict("changed-graphs", ok);
}
