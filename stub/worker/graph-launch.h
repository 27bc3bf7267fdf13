// Launches executable graphs, with the session's own nodes in them, which write the launch's number or wait for the program.
#pragma once

#include "stub/worker/execution.h"
#include "stub/worker/kinds/graphs.h"

namespace vgpu::stub {

// The memory operations of one of the session's own nodes, for the launch with that number.
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

// Numbers that some completion words get instead of the launch's number.
struct OtherNumbers {
  api::ElementsReader<uint32_t> lines{nullptr};
  api::ElementsReader<uint64_t> numbers{nullptr};  // one for each line

  uint64_t find(uint32_t line, uint64_t otherwise) const;
};

// Sets this launch's number in the session's own nodes, and launches the graph into the stream with that virtual handle.
CUresult launchGraph(Execution& on, KnownGraph& graph, uint64_t stream, const OtherNumbers& others = {});

}  // namespace vgpu::stub
