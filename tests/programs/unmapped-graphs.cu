// Executable graphs that were changed from memory which has been unmapped since: their fills, copies and operations on words go on in
// other memory, also after a suspend.
#include "shared-physical.h"

namespace {

constexpr unsigned filled = 7, written = 9;

unsigned* mapNew() {
  CUmemAllocationProp properties = exportable();
  CUmemGenericAllocationHandle physical;
  CALL(cuMemCreate, &physical, granularity(), &properties, 0);
  unsigned* memory = map(physical);
  CALL(cuMemRelease, physical);  // it ends when it is unmapped
  return memory;
}

// Fills a word, writes the next, and copies both to the end.
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

}  // namespace

int main() {
  Changed asWhole(true), oneByOne(false);
  bool ok = asWhole.works() & oneByOne.works();
  pausePoint();
  ok &= asWhole.works() & oneByOne.works();
  return verdict("unmapped-graphs", ok);
}
