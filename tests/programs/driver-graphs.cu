// Graphs by the driver API: nodes of any type by the common entry, memory operations, events that order two graphs, attributes, and all
// queries and setters; also after a suspend.
#include "driver-entry.h"

#include <cstring>
#include <fstream>
#include <sstream>
#include <string>

__global__ void add(unsigned* value, unsigned amount) { *value += amount; }

namespace {

bool gives(const char* what, CUresult result, CUresult expected) {
  if (result == expected) return true;
  std::fprintf(stderr, "driver-graphs: %s gave %d, expected %d\n", what, static_cast<int>(result), static_cast<int>(expected));
  return false;
}
#define GIVES(expected, name, ...) gives(#name, findInDriver<decltype(&name)>(#name)(__VA_ARGS__), expected)

CUfunction function() {
  cudaFunction_t found;
  CHECK(cudaGetFuncBySymbol(&found, reinterpret_cast<const void*>(add)));
  return found;
}

CUgraphNodeParams adds(unsigned* value, unsigned amount, void** arguments, unsigned* kept, unsigned** place) {
  *kept = amount;
  *place = value;
  arguments[0] = place;
  arguments[1] = kept;
  CUgraphNodeParams params{};
  params.type = CU_GRAPH_NODE_TYPE_KERNEL;
  params.kernel.func = function();
  params.kernel.gridDimX = params.kernel.gridDimY = params.kernel.gridDimZ = 1;
  params.kernel.blockDimX = params.kernel.blockDimY = params.kernel.blockDimZ = 1;
  params.kernel.kernelParams = arguments;
  return params;
}

unsigned read(const unsigned* value) {
  unsigned got = 0;
  CHECK(cudaMemcpy(&got, value, sizeof got, cudaMemcpyDeviceToHost));
  return got;
}

std::string printed(CUgraph graph, unsigned flags) {
  const std::string path = "/tmp/vgpu-driver-graphs-" + std::to_string(getpid()) + ".dot";
  CALL(cuGraphDebugDotPrint, graph, path.c_str(), flags);
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  unlink(path.c_str());
  return text.str();
}

// A printed graph contains the node details that the flags request.
bool checkPrinted(unsigned* values) {
  CUgraph graph;
  CUgraphNode kernel, fill;
  CALL(cuGraphCreate, &graph, 0);
  void* arguments[2];
  unsigned kept, *place;
  CUgraphNodeParams params = adds(values, 1, arguments, &kept, &place);
  params.kernel.sharedMemBytes = 1234;
  CALL(cuGraphAddNode, &kernel, graph, nullptr, nullptr, 0, &params);
  params = CUgraphNodeParams{};
  params.type = CU_GRAPH_NODE_TYPE_MEMSET;
  params.memset = {reinterpret_cast<CUdeviceptr>(values), 0, 4, 4, 7, 1, nullptr};
  CALL(cuGraphAddNode, &fill, graph, &kernel, nullptr, 1, &params);
  auto says = [&](unsigned flags, const char* word) { return printed(graph, flags).find(word) != std::string::npos; };
  const std::string little = printed(graph, 0);
  bool ok = EXPECT(!says(0, "1234")) & EXPECT(says(0, "add"));
  ok &= EXPECT(says(CU_GRAPH_DEBUG_DOT_FLAGS_KERNEL_NODE_PARAMS, "1234"));
  ok &= EXPECT(!says(CU_GRAPH_DEBUG_DOT_FLAGS_MEMSET_NODE_PARAMS, "1234"));
  ok &= EXPECT(says(CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE, "1234"));
  ok &= EXPECT(printed(graph, CU_GRAPH_DEBUG_DOT_FLAGS_MEMSET_NODE_PARAMS) != little);
  ok &= EXPECT(printed(graph, CU_GRAPH_DEBUG_DOT_FLAGS_HANDLES) != little);
  ok &= EXPECT(printed(graph, CU_GRAPH_DEBUG_DOT_FLAGS_HOST_NODE_PARAMS) == little);
  CALL(cuGraphDestroy, graph);
  return ok;
}

// A fill with 4, a kernel that adds 1, and batched writes of two more words: by the common entry for all types.
bool checkAny(unsigned* values) {
  CUgraph graph;
  CUgraphNode fill, kernel, words, empty;
  CALL(cuGraphCreate, &graph, 0);
  CUgraphNodeParams params{};
  params.type = CU_GRAPH_NODE_TYPE_MEMSET;
  params.memset = {reinterpret_cast<CUdeviceptr>(values), 0, 4, 4, 4, 1, nullptr};
  CALL(cuGraphAddNode, &fill, graph, nullptr, nullptr, 0, &params);
  void* arguments[2];
  unsigned kept, *place;
  params = adds(values, 1, arguments, &kept, &place);
  CALL(cuGraphAddNode, &kernel, graph, &fill, nullptr, 1, &params);
  CUstreamBatchMemOpParams operations[2]{};
  operations[0].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
  operations[0].writeValue.address = reinterpret_cast<CUdeviceptr>(values + 1);
  operations[0].writeValue.value = 77;
  operations[1].waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
  operations[1].waitValue.address = reinterpret_cast<CUdeviceptr>(values + 1);
  operations[1].waitValue.value = 70;
  operations[1].waitValue.flags = CU_STREAM_WAIT_VALUE_GEQ;
  CUDA_BATCH_MEM_OP_NODE_PARAMS batch{};
  CALL(cuCtxGetCurrent, &batch.ctx);
  batch.count = 2;
  batch.paramArray = operations;
  CALL(cuGraphAddBatchMemOpNode, &words, graph, &kernel, 1, &batch);
  params = {};
  params.type = CU_GRAPH_NODE_TYPE_EMPTY;
  CALL(cuGraphAddNode, &empty, graph, &words, nullptr, 1, &params);
  CUDA_BATCH_MEM_OP_NODE_PARAMS back{};
  CALL(cuGraphBatchMemOpNodeGetParams, words, &back);
  bool ok = EXPECT(back.count == 2) & EXPECT(back.paramArray[0].writeValue.value == 77);

  CUDA_GRAPH_INSTANTIATE_PARAMS how{};
  how.flags = CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD;
  CUgraphExec exec;
  CALL(cuGraphInstantiateWithParams, &exec, graph, &how);
  cuuint64_t flags = 0;
  CALL(cuGraphExecGetFlags, exec, &flags);
  ok &= EXPECT(how.result_out == CUDA_GRAPH_INSTANTIATE_SUCCESS) & EXPECT(flags == 0);
  CALL(cuGraphLaunch, exec, nullptr);
  ok &= EXPECT(read(values) == 5) & EXPECT(read(values + 1) == 77) & EXPECT(read(values + 2) == 4);

  // Changes the graph's own nodes, then only those of the executable graph.
  params = adds(values, 10, arguments, &kept, &place);
  CALL(cuGraphNodeSetParams, kernel, &params);
  CUDA_KERNEL_NODE_PARAMS now{};
  CALL(cuGraphKernelNodeGetParams, kernel, &now);
  ok &= EXPECT(*static_cast<unsigned*>(now.kernelParams[1]) == 10);
  params = adds(values, 100, arguments, &kept, &place);
  CALL(cuGraphExecNodeSetParams, exec, kernel, &params);
  operations[0].writeValue.value = 78;
  CALL(cuGraphExecBatchMemOpNodeSetParams, exec, words, &batch);
  CUDA_MEMSET_NODE_PARAMS five{reinterpret_cast<CUdeviceptr>(values), 0, 5, 4, 4, 1};
  CUcontext context;
  CALL(cuCtxGetCurrent, &context);
  CALL(cuGraphExecMemsetNodeSetParams, exec, fill, &five, context);
  five.height = 2;
  five.pitch = 16;
  ok &= GIVES(CUDA_ERROR_INVALID_VALUE, cuGraphExecMemsetNodeSetParams, exec, fill, &five, context);
  ok &= GIVES(CUDA_ERROR_INVALID_VALUE, cuGraphExecKernelNodeSetParams, exec, fill, &now);

  pausePoint();

  CALL(cuGraphLaunch, exec, nullptr);
  ok &= EXPECT(read(values) == 105) & EXPECT(read(values + 1) == 78) & EXPECT(read(values + 2) == 5);
  CUgraphExecUpdateResultInfo info;
  CALL(cuGraphExecUpdate, exec, graph, &info);
  CALL(cuGraphLaunch, exec, nullptr);
  ok &= EXPECT(read(values) == 14) & EXPECT(read(values + 1) == 77);
  CALL(cuGraphExecDestroy, exec);
  ok &= GIVES(CUDA_ERROR_INVALID_VALUE, cuGraphLaunch, exec, nullptr);
  CALL(cuGraphDestroy, graph);
  return ok;
}

// One graph waits for the event that the other records.
bool checkEvents(unsigned* values) {
  CUstream first, second;
  CUevent event, other;
  CALL(cuStreamCreate, &first, CU_STREAM_NON_BLOCKING);
  CALL(cuStreamCreate, &second, CU_STREAM_NON_BLOCKING);
  CALL(cuEventCreate, &event, CU_EVENT_DISABLE_TIMING);
  CALL(cuEventCreate, &other, CU_EVENT_DISABLE_TIMING);
  CUgraph producer, consumer;
  CUgraphNode write, record, wait, kernel;
  CALL(cuGraphCreate, &producer, 0);
  CALL(cuGraphCreate, &consumer, 0);
  CUDA_MEMSET_NODE_PARAMS fill{reinterpret_cast<CUdeviceptr>(values), 0, 40, 4, 1, 1};
  CUcontext context;
  CALL(cuCtxGetCurrent, &context);
  CALL(cuGraphAddMemsetNode, &write, producer, nullptr, 0, &fill, context);
  CALL(cuGraphAddEventRecordNode, &record, producer, &write, 1, other);
  CALL(cuGraphEventRecordNodeSetEvent, record, event);
  CALL(cuGraphAddEventWaitNode, &wait, consumer, nullptr, 0, event);
  void* arguments[2];
  unsigned kept, *place;
  CUgraphNodeParams params = adds(values, 2, arguments, &kept, &place);
  CALL(cuGraphAddNode, &kernel, consumer, &wait, nullptr, 1, &params);
  CUevent found = nullptr;
  CALL(cuGraphEventRecordNodeGetEvent, record, &found);
  bool ok = EXPECT(found == event);
  CUgraphExec one, two;
  CALL(cuGraphInstantiateWithFlags, &one, producer, 0);
  CALL(cuGraphInstantiateWithFlags, &two, consumer, 0);
  for (int round = 0; round < 20; ++round) {
    CALL(cuGraphLaunch, one, first);
    CALL(cuGraphLaunch, two, second);
    CALL(cuEventSynchronize, event);
    CALL(cuStreamSynchronize, second);
    ok &= EXPECT(read(values) == 42);
  }
  ok &= GIVES(CUDA_SUCCESS, cuEventQuery, event);
  CALL(cuGraphExecEventRecordNodeSetEvent, one, record, other);
  CALL(cuGraphLaunch, one, first);
  CALL(cuEventSynchronize, other);
  ok &= EXPECT(read(values) == 40);
  for (CUgraphExec each : {one, two}) CALL(cuGraphExecDestroy, each);
  for (CUgraph each : {producer, consumer}) CALL(cuGraphDestroy, each);
  for (CUevent each : {event, other}) CALL(cuEventDestroy, each);
  for (CUstream each : {first, second}) CALL(cuStreamDestroy, each);
  return ok;
}

// Attributes of a kernel node, and the graph as text.
bool checkAttributes(unsigned* values) {
  CUgraph graph;
  CUgraphNode first, second;
  CALL(cuGraphCreate, &graph, 0);
  void* arguments[2];
  unsigned kept, *place;
  CUgraphNodeParams params = adds(values, 1, arguments, &kept, &place);
  CALL(cuGraphAddNode, &first, graph, nullptr, nullptr, 0, &params);
  CALL(cuGraphAddNode, &second, graph, &first, nullptr, 1, &params);
  CUkernelNodeAttrValue value{}, got{};
  value.cooperative = 1;
  CALL(cuGraphKernelNodeSetAttribute, first, CU_KERNEL_NODE_ATTRIBUTE_COOPERATIVE, &value);
  CALL(cuGraphKernelNodeCopyAttributes, second, first);
  CALL(cuGraphKernelNodeGetAttribute, second, CU_KERNEL_NODE_ATTRIBUTE_COOPERATIVE, &got);
  bool ok = EXPECT(got.cooperative == 1);
  CUgraphExec exec;
  CALL(cuGraphInstantiateWithFlags, &exec, graph, 0);
  unsigned before = read(values);
  CALL(cuGraphLaunch, exec, nullptr);
  ok &= EXPECT(read(values) == before + 2);
  ok &= EXPECT(printed(graph, 0).find("digraph") == 0) & EXPECT(printed(graph, 0).find("->") != std::string::npos);
  CALL(cuGraphExecDestroy, exec);
  CALL(cuGraphDestroy, graph);
  return ok;
}

}  // namespace

int main() {
  CHECK(cudaFree(nullptr));
  DeviceArray<unsigned> values(std::vector<unsigned>(16, 0));
  bool ok = checkAny(values);
  ok &= checkEvents(values);
  ok &= checkAttributes(values);
  ok &= checkPrinted(values);
  return verdict("driver-graphs", ok);
}
