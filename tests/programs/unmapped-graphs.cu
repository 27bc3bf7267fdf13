// Executable graphs over memory that is unmapped, all of which must work after a suspend too. (1) Nodes set to other memory before the
// unmapping: fills, copies and batch memory operations use the new memory. (2) Fill and copy disabled, and their memory unmapped: the other
// nodes run, and the fill can be set to other memory and enabled. (3) Unchanged graphs that have other memory at the same addresses when
// they are launched (a program that releases its memory while it sleeps), or whose device meanwhile has no access, or only reads.
#include "shared-physical.h"

namespace {

constexpr unsigned filled = 7, written = 9;

unsigned* mapNew() {
  CUmemAllocationProp properties = exportable();
  CUmemGenericAllocationHandle physical;
  CALL(cuMemCreate, &physical, granularity(), &properties, 0);
  unsigned* memory = map(physical);
  CALL(cuMemRelease, physical);  // it is freed when it is unmapped
  return memory;
}

// Fills a word, writes the next one, and finally copies both.
struct Graph {
  Graph(unsigned* words, unsigned* out) : fill(fillOf(words)), write(writeOf(words + 1)) {
    CHECK(cudaGraphCreate(&graph, 0));
    CHECK(cudaGraphAddMemsetNode(&fillNode, graph, nullptr, 0, &fill));
    CUDA_BATCH_MEM_OP_NODE_PARAMS batch = batchOf(write);
    CALL(cuGraphAddBatchMemOpNode, &writeNode, graph, &fillNode, 1, &batch);
    CHECK(cudaGraphAddMemcpyNode1D(&copyNode, graph, &writeNode, 1, out, words, 2 * sizeof *words, cudaMemcpyDeviceToDevice));
  }
  ~Graph() { CHECK(cudaGraphDestroy(graph)); }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  static cudaMemsetParams fillOf(unsigned* word) {
    cudaMemsetParams params{};
    params.dst = word;
    params.value = filled;
    params.elementSize = sizeof *word;
    params.width = params.height = 1;
    return params;
  }
  static CUstreamBatchMemOpParams writeOf(unsigned* word) {
    CUstreamBatchMemOpParams params{};
    params.writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
    params.writeValue.address = reinterpret_cast<CUdeviceptr>(word);
    params.writeValue.value = written;
    return params;
  }
  static CUDA_BATCH_MEM_OP_NODE_PARAMS batchOf(CUstreamBatchMemOpParams& write) {
    CUDA_BATCH_MEM_OP_NODE_PARAMS batch{};
    CALL(cuCtxGetCurrent, &batch.ctx);
    batch.count = 1;
    batch.paramArray = &write;
    return batch;
  }

  cudaMemsetParams fill;
  CUstreamBatchMemOpParams write;
  cudaGraph_t graph;
  CUgraphNode fillNode, writeNode, copyNode;
};

class Changed {
 public:
  explicit Changed(bool asWhole) {
    unsigned* before = mapNew();
    {
      Graph graph(before, out);
      CHECK(cudaGraphInstantiate(&exec, graph.graph, 0));
      asWhole ? update() : set(graph);
    }
    unmap(before);
  }
  ~Changed() {
    CHECK(cudaGraphExecDestroy(exec));
    unmap(words);
  }
  Changed(const Changed&) = delete;
  Changed& operator=(const Changed&) = delete;

  bool works() {
    CHECK(cudaMemset(words, 0, 2 * sizeof *words));
    out.upload({0, 0});
    CHECK(cudaGraphLaunch(exec, cudaStreamLegacy));
    CHECK(cudaStreamSynchronize(cudaStreamLegacy));
    return same("of a graph", out.download(), {filled, written});
  }

 private:
  void update() {
    Graph other(words, out);
    cudaGraphExecUpdateResultInfo info{};
    CHECK(cudaGraphExecUpdate(exec, other.graph, &info));
  }
  void set(const Graph& graph) {
    const cudaMemsetParams fill = Graph::fillOf(words);
    CUstreamBatchMemOpParams write = Graph::writeOf(words + 1);
    const CUDA_BATCH_MEM_OP_NODE_PARAMS batch = Graph::batchOf(write);
    CHECK(cudaGraphExecMemsetNodeSetParams(exec, graph.fillNode, &fill));
    CALL(cuGraphExecBatchMemOpNodeSetParams, exec, graph.writeNode, &batch);
    CHECK(cudaGraphExecMemcpyNodeSetParams1D(exec, graph.copyNode, out, words, 2 * sizeof(unsigned), cudaMemcpyDeviceToDevice));
  }

  unsigned* const words = mapNew();
  DeviceArray<unsigned> out{2};
  cudaGraphExec_t exec;
};

class Disabled {
 public:
  // Instantiated with memory that is then unmapped, or set to it.
  explicit Disabled(bool isSet) {
    unsigned* gone = mapNew();
    unsigned* first = isSet ? words : gone;
    const cudaMemsetParams fill = Graph::fillOf(first), mark = Graph::fillOf(words + 3);
    CHECK(cudaGraphCreate(&graph, 0));
    CHECK(cudaGraphAddMemsetNode(&fillNode, graph, nullptr, 0, &fill));
    CHECK(cudaGraphAddMemcpyNode1D(&copyNode, graph, &fillNode, 1, words + 1, first, sizeof *words, cudaMemcpyDeviceToDevice));
    CHECK(cudaGraphAddMemsetNode(&markNode, graph, &copyNode, 1, &mark));
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    if (isSet) {
      setFill(gone);
      CHECK(cudaGraphExecMemcpyNodeSetParams1D(exec, copyNode, words + 1, gone, sizeof *words, cudaMemcpyDeviceToDevice));
    }
    for (cudaGraphNode_t node : {fillNode, copyNode}) CHECK(cudaGraphNodeSetEnabled(exec, node, 0));
    unmap(gone);
  }
  ~Disabled() {
    CHECK(cudaGraphExecDestroy(exec));
    CHECK(cudaGraphDestroy(graph));
    unmap(words);
  }
  Disabled(const Disabled&) = delete;
  Disabled& operator=(const Disabled&) = delete;

  bool works(const std::vector<unsigned>& expected) {
    std::vector<unsigned> found(expected.size());
    CHECK(cudaMemset(words, 0, found.size() * sizeof *words));
    CHECK(cudaGraphLaunch(exec, cudaStreamLegacy));
    if (!EXPECT_ERROR(cudaStreamSynchronize(cudaStreamLegacy), cudaSuccess)) return false;
    CHECK(cudaMemcpy(found.data(), words, found.size() * sizeof *words, cudaMemcpyDeviceToHost));
    return same("of a disabled graph", found, expected);
  }
  bool fillsAgain() {
    setFill(words);
    CHECK(cudaGraphNodeSetEnabled(exec, fillNode, 1));
    return works({filled, 0, 0, filled});
  }

 private:
  void setFill(unsigned* to) {
    const cudaMemsetParams fill = Graph::fillOf(to);
    CHECK(cudaGraphExecMemsetNodeSetParams(exec, fillNode, &fill));
  }

  unsigned* const words = mapNew();
  cudaGraph_t graph;
  cudaGraphNode_t fillNode, copyNode, markNode;
  cudaGraphExec_t exec;
};

class Asleep {
 public:
  Asleep() {
    CALL(cuMemAddressReserve, &address, granularity(), 0, 0, 0);
    auto* words = reinterpret_cast<unsigned*>(address);
    wake();
    Graph graph(words, out);
    CHECK(cudaGraphInstantiate(&exec, graph.graph, 0));
    CALL(cuMemUnmap, address, granularity());
  }
  ~Asleep() {
    CHECK(cudaGraphExecDestroy(exec));
    unmap(reinterpret_cast<unsigned*>(address));
  }
  Asleep(const Asleep&) = delete;
  Asleep& operator=(const Asleep&) = delete;

  void wake() {
    const CUmemAllocationProp properties = exportable();
    CUmemGenericAllocationHandle physical;
    CALL(cuMemCreate, &physical, granularity(), &properties, 0);
    CALL(cuMemMap, address, granularity(), 0, physical, 0);
    CALL(cuMemRelease, physical);
    const CUmemAccessDesc access{properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CALL(cuMemSetAccess, address, granularity(), &access, 1);
  }
  bool works() {
    out.upload({0, 0});
    CHECK(cudaGraphLaunch(exec, cudaStreamLegacy));
    if (!EXPECT_ERROR(cudaStreamSynchronize(cudaStreamLegacy), cudaSuccess)) return false;
    return same("of a graph that was asleep", out.download(), {filled, written});
  }

 private:
  CUdeviceptr address;
  DeviceArray<unsigned> out{2};
  cudaGraphExec_t exec;
};

// Access of the device to the graph's memory is reduced, or set again to the same, after instantiation.
class Denied {
 public:
  explicit Denied(CUmemAccess_flags flags) {
    Graph graph(words, out);
    CHECK(cudaGraphInstantiate(&exec, graph.graph, 0));
    allow(flags);
  }
  ~Denied() {
    CHECK(cudaGraphExecDestroy(exec));
    unmap(words);
  }
  Denied(const Denied&) = delete;
  Denied& operator=(const Denied&) = delete;

  void allow(CUmemAccess_flags flags) {
    const CUmemAccessDesc access{exportable().location, flags};
    CALL(cuMemSetAccess, reinterpret_cast<CUdeviceptr>(words), granularity(), &access, 1);
  }
  bool isAllowed(unsigned long long flags) const {
    unsigned long long now = 0;
    const CUmemLocation device = exportable().location;
    CALL(cuMemGetAccess, &now, &device, reinterpret_cast<CUdeviceptr>(words));
    return EXPECT(now == flags);
  }
  bool works() {
    CHECK(cudaMemset(words, 0, 2 * sizeof *words));
    out.upload({0, 0});
    CHECK(cudaGraphLaunch(exec, cudaStreamLegacy));
    if (!EXPECT_ERROR(cudaStreamSynchronize(cudaStreamLegacy), cudaSuccess)) return false;
    return same("of a graph that was denied its memory", out.download(), {filled, written});
  }

 private:
  unsigned* const words = mapNew();
  DeviceArray<unsigned> out{2};
  cudaGraphExec_t exec;
};

}  // namespace

int main() {
  Changed asWhole(true), oneByOne(false);
  Disabled made(false), set(true);
  Asleep wokenBefore, wokenBehind;
  Denied readable(CU_MEM_ACCESS_FLAGS_PROT_READ), unreadable(CU_MEM_ACCESS_FLAGS_PROT_NONE), again(CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  wokenBefore.wake();
  const std::vector<unsigned> rest{0, 0, 0, filled};
  bool ok = asWhole.works() & oneByOne.works() & made.works(rest) & set.works(rest) & wokenBefore.works();
  pausePoint();
  wokenBehind.wake();
  ok &= asWhole.works() & oneByOne.works() & made.works(rest) & set.works(rest) & made.fillsAgain() & set.fillsAgain();
  ok &= wokenBefore.works() & wokenBehind.works() & again.works();
  ok &= readable.isAllowed(CU_MEM_ACCESS_FLAGS_PROT_READ) & unreadable.isAllowed(CU_MEM_ACCESS_FLAGS_PROT_NONE);
  for (Denied* denied : {&readable, &unreadable}) {
    denied->allow(CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    ok &= denied->works();
  }
  return verdict("unmapped-graphs", ok);
}
