// Stream memory operations on words of pinned memory, which the host writes too: each side sees the other's writes. In a capturing stream
// they become nodes, which do the same at each launch.
#include "exported-entry.h"

namespace {

__global__ void copyWord(unsigned* to, const unsigned* from) { *to = *from; }

struct Words {
  Words() {
    CHECK(cudaMallocHost(&at, 16 * sizeof *at));
    for (int i = 0; i < 16; ++i) at[i] = 0;
  }
  ~Words() { CHECK(cudaFreeHost(const_cast<unsigned*>(at))); }
  CUdeviceptr operator()(int i) const { return reinterpret_cast<CUdeviceptr>(at + i); }
  volatile unsigned* at = nullptr;
};

CUstreamBatchMemOpParams writes(CUdeviceptr address, unsigned value) {
  CUstreamBatchMemOpParams operation{};
  operation.writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
  operation.writeValue.address = address;
  operation.writeValue.value = value;
  return operation;
}

bool seeEachOther(const Words& words, cudaStream_t stream, unsigned first) {
  bool ok = true;
  for (unsigned round = first; round < first + 3; ++round) {
    words.at[0] = round;  // on a page that the host has
    ok &= WORKS(cuStreamWriteValue32_v2, stream, words(1), 10 + round, 0);
    CHECK(cudaStreamSynchronize(stream));
    ok &= EXPECT(words.at[0] == round) & EXPECT(words.at[1] == 10 + round);
    words.at[2] = 20 + round;
    ok &= WORKS(cuStreamWaitValue32_v2, stream, words(2), 20 + round, CU_STREAM_WAIT_VALUE_EQ);
    ok &= WORKS(cuStreamWriteValue64_v2, stream, words(4), uint64_t{round} << 32 | 5, 0);
    CHECK(cudaStreamSynchronize(stream));
    words.at[6] = round;
    ok &= WORKS(cuStreamWaitValue64_v2, stream, words(4), uint64_t{round} << 32 | 5, CU_STREAM_WAIT_VALUE_EQ);
    copyWord<<<1, 1, 0, stream>>>(const_cast<unsigned*>(words.at + 7), const_cast<unsigned*>(words.at + 1));
    CHECK(cudaStreamSynchronize(stream));
    ok &= EXPECT(words.at[2] == 20 + round) & EXPECT(words.at[4] == 5) & EXPECT(words.at[5] == round) & EXPECT(words.at[6] == round) &
          EXPECT(words.at[7] == 10 + round);
  }
  return ok;
}

// Four nodes in sequence.
cudaGraph_t captured(const Words& words, cudaStream_t stream, bool& ok) {
  cudaGraph_t graph;
  CUstreamBatchMemOpParams barrier{};
  barrier.memoryBarrier.operation = CU_STREAM_MEM_OP_BARRIER;
  CUstreamBatchMemOpParams batch[] = {writes(words(9), 31), barrier, writes(words(10), 32)};
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  ok &= WORKS(cuStreamWaitValue32_v2, stream, words(8), 1, CU_STREAM_WAIT_VALUE_GEQ);
  ok &= WORKS(cuStreamBatchMemOp_v2, stream, 3, batch, 0);
  batch[0] = {};
  copyWord<<<1, 1, 0, stream>>>(const_cast<unsigned*>(words.at + 11), const_cast<unsigned*>(words.at + 10));
  ok &= WORKS(cuStreamWriteValue64_v2, stream, words(12), uint64_t{7} << 32 | 6, 0);
  CHECK(cudaStreamEndCapture(stream, &graph));
  return graph;
}

bool areNodes(cudaGraph_t graph, const Words& words) {
  cudaGraphNode_t nodes[5];
  size_t count = 5, edges = 0;
  CHECK(cudaGraphGetNodes(graph, nodes, &count));
  CHECK(cudaGraphGetEdges(graph, nullptr, nullptr, nullptr, &edges));
  bool ok = EXPECT(count == 4) & EXPECT(edges == 3);
  const unsigned operations[] = {1, 3, 0, 1};
  for (size_t i = 0; i < count && i < 4; ++i) {
    CUgraphNodeType type;
    CUDA_BATCH_MEM_OP_NODE_PARAMS params{};
    ok &= WORKS(cuGraphNodeGetType, nodes[i], &type);
    ok &= EXPECT(type == (operations[i] == 0 ? CU_GRAPH_NODE_TYPE_KERNEL : CU_GRAPH_NODE_TYPE_BATCH_MEM_OP));
    if (operations[i] == 0) continue;
    ok &= WORKS(cuGraphBatchMemOpNodeGetParams, nodes[i], &params) && EXPECT(params.count == operations[i]);
    if (i == 1)
      ok &= EXPECT(params.paramArray[0].writeValue.address == words(9)) & EXPECT(params.paramArray[2].writeValue.value == 32);
  }
  return ok;
}

bool run(cudaGraphExec_t exec, const Words& words, cudaStream_t stream) {
  for (int i = 9; i < 14; ++i) words.at[i] = 0;
  words.at[8] = 1;
  CHECK(cudaGraphLaunch(exec, stream));
  CHECK(cudaStreamSynchronize(stream));
  return EXPECT(words.at[9] == 31) & EXPECT(words.at[11] == 32) & EXPECT(words.at[12] == 6) & EXPECT(words.at[13] == 7);
}

}  // namespace

int main() {
  alarm(60);
  Words words;
  cudaStream_t stream;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  bool ok = seeEachOther(words, stream, 1) & GIVES(CUDA_ERROR_INVALID_VALUE, cuStreamWriteValue32_v2, stream, 0x1000, 1, 0);
  cudaGraph_t graph = captured(words, stream, ok);
  ok &= areNodes(graph, words);
  cudaGraphExec_t exec;
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  ok &= run(exec, words, stream);
  pausePoint();
  ok &= run(exec, words, stream) & seeEachOther(words, stream, 100);
  CHECK(cudaGraphExecDestroy(exec));
  CHECK(cudaGraphDestroy(graph));
  CHECK(cudaStreamDestroy(stream));
  return verdict("stream-words", ok);
}
