// The launch of an executable graph, and the nodes of the session's own, which write its number and wait for the program.
#pragma once

#include "stub/worker/execution.h"
#include "stub/worker/kinds/graphs.h"

namespace vgpu::stub {

// The operations of a node of the session's own, in the launch of that number.
struct OwnOperations {
  OwnOperations(Execution& on, const OwnWords& own, uint64_t number) {
    CompletionWord& word = on.shared().completionWord(own.line);
    operations[0].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_64;
    operations[0].writeValue.address = on.session.gpuAddress(&word.done);
    operations[0].writeValue.value64 = number;
    operations[0].writeValue.flags = CU_STREAM_WRITE_VALUE_DEFAULT;
    operations[1].waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_64;
    operations[1].waitValue.address = on.session.gpuAddress(&word.answered);
    operations[1].waitValue.value64 = number;
    operations[1].waitValue.flags = CU_STREAM_WAIT_VALUE_GEQ;
    node.ctx = on.gpu.context.get();
    node.count = own.waits ? 2 : 1;
    node.paramArray = operations;
  }
  OwnOperations(const OwnOperations&) = delete;

  CUstreamBatchMemOpParams operations[2]{};
  CUDA_BATCH_MEM_OP_NODE_PARAMS node{};
};

// What some completion words get instead of the launch's number.
struct OtherNumbers {
  api::ElementsReader<uint32_t> lines{nullptr};
  api::ElementsReader<uint64_t> numbers{nullptr};  // one a line

  uint64_t find(uint32_t line, uint64_t otherwise) const;
};

// Sets the number of this launch in these nodes, and gives the graph to the stream of that virtual handle.
CUresult launchGraph(Execution& on, KnownGraph& graph, uint64_t stream, const OtherNumbers& others = {});

}  // namespace vgpu::stub
