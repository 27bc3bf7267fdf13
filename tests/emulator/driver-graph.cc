#include <atomic>

#include "driver-fixture.h"

using namespace vgpu::test;

namespace {

struct Streams {
  Streams() {
    REQUIRE_CUDA(cuStreamCreate(&first, CU_STREAM_NON_BLOCKING));
    REQUIRE_CUDA(cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
  }
  CUstream first = nullptr, second = nullptr;
};

CUDA_KERNEL_NODE_PARAMS kernelNode(CUfunction function, void** arguments) {
  CUDA_KERNEL_NODE_PARAMS params{};
  params.func = function;
  params.gridDimX = params.gridDimY = params.gridDimZ = 1;
  params.blockDimX = params.blockDimY = params.blockDimZ = 1;
  params.kernelParams = arguments;
  return params;
}

}  // namespace

TEST_CASE("a graph made by hand runs in the order of its edges") {
  Device device;
  CUmodule module = device.load();
  CUdeviceptr word = device.allocate(4);
  Streams streams;
  CUgraph graph = nullptr;
  CUgraphNode fill = nullptr, store = nullptr, add = nullptr;
  REQUIRE_CUDA(cuGraphCreate(&graph, 0));
  uint32_t value = 40;
  void* storeArguments[] = {&word, &value};
  void* addArguments[] = {&word};
  CUDA_KERNEL_NODE_PARAMS params = kernelNode(function(module, "increment"), addArguments);
  REQUIRE_CUDA(cuGraphAddKernelNode(&add, graph, nullptr, 0, &params));
  params = kernelNode(function(module, "store"), storeArguments);
  REQUIRE_CUDA(cuGraphAddKernelNode(&store, graph, nullptr, 0, &params));
  CUDA_MEMSET_NODE_PARAMS clear{word, 0, 7, 4, 1, 1};
  REQUIRE_CUDA(cuGraphAddMemsetNode(&fill, graph, nullptr, 0, &clear, device.context));
  REQUIRE_CUDA(cuGraphAddDependencies(graph, &fill, &store, nullptr, 1));
  REQUIRE_CUDA(cuGraphAddDependencies(graph, &store, &add, nullptr, 1));
  CHECK_ANSWER(cuGraphAddDependencies(graph, &store, &add, nullptr, 1), CUDA_ERROR_INVALID_VALUE);
  CUgraphExec exec = nullptr;
  REQUIRE_CUDA(cuGraphInstantiate(&exec, graph, 0));
  for (int i = 0; i < 3; ++i) REQUIRE_CUDA(cuGraphLaunch(exec, streams.first));
  REQUIRE_CUDA(cuStreamSynchronize(streams.first));
  CHECK_EQ(device.read(word), 41);
  CUDA_KERNEL_NODE_PARAMS asked{};
  CHECK_CUDA(cuGraphKernelNodeGetParams(store, &asked));
  CHECK_EQ(*static_cast<uint32_t*>(asked.kernelParams[1]), 40);
  value = 50;
  CHECK_CUDA(cuGraphExecKernelNodeSetParams(exec, store, &params));
  CHECK_CUDA(cuGraphNodeSetEnabled(exec, add, 0));
  REQUIRE_CUDA(cuGraphLaunch(exec, streams.first));
  REQUIRE_CUDA(cuStreamSynchronize(streams.first));
  CHECK_EQ(device.read(word), 50);
  CHECK_CUDA(cuGraphDestroy(graph));
  CHECK_CUDA(cuGraphExecDestroy(exec));
  CHECK_ANSWER(cuGraphLaunch(exec, streams.first), CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("a graph with a cycle is refused") {
  Device device;
  CUgraph graph = nullptr;
  CUgraphNode a = nullptr, b = nullptr;
  REQUIRE_CUDA(cuGraphCreate(&graph, 0));
  REQUIRE_CUDA(cuGraphAddEmptyNode(&a, graph, nullptr, 0));
  REQUIRE_CUDA(cuGraphAddEmptyNode(&b, graph, &a, 1));
  REQUIRE_CUDA(cuGraphAddDependencies(graph, &b, &a, nullptr, 1));
  CUgraphExec exec = nullptr;
  CHECK_ANSWER(cuGraphInstantiate(&exec, graph, 0), CUDA_ERROR_INVALID_VALUE);
  CHECK_CUDA(cuGraphDestroy(graph));
}

TEST_CASE("streams joined by events are captured into one graph") {
  Device device;
  CUmodule module = device.load();
  CUfunction increment = function(module, "increment");
  CUdeviceptr word = device.allocate(4);
  Streams streams;
  CUevent fork = nullptr, join = nullptr;
  REQUIRE_CUDA(cuEventCreate(&fork, CU_EVENT_DISABLE_TIMING));
  REQUIRE_CUDA(cuEventCreate(&join, CU_EVENT_DISABLE_TIMING));
  REQUIRE_CUDA(cuCtxSynchronize());
  REQUIRE_CUDA(cuStreamBeginCapture(streams.first, CU_STREAM_CAPTURE_MODE_GLOBAL));
  REQUIRE_CUDA(cuMemsetD32Async(word, 100, 1, streams.first));
  REQUIRE_CUDA(cuEventRecord(fork, streams.first));
  REQUIRE_CUDA(cuStreamWaitEvent(streams.second, fork, 0));
  REQUIRE_CUDA(launch(increment, streams.second, 1, word));
  REQUIRE_CUDA(launch(increment, streams.first, 1, word));
  REQUIRE_CUDA(cuEventRecord(join, streams.second));
  REQUIRE_CUDA(cuStreamWaitEvent(streams.first, join, 0));
  REQUIRE_CUDA(launch(increment, streams.first, 1, word));
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  CHECK_CUDA(cuStreamIsCapturing(streams.second, &status));
  CHECK_EQ(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
  CUgraph graph = nullptr;
  REQUIRE_CUDA(cuStreamEndCapture(streams.first, &graph));
  CHECK_CUDA(cuStreamIsCapturing(streams.second, &status));
  CHECK_EQ(status, CU_STREAM_CAPTURE_STATUS_NONE);
  CHECK_EQ(device.read(word), 0);  // nothing has run
  size_t nodes = 0, edges = 0;
  CHECK_CUDA(cuGraphGetNodes(graph, nullptr, &nodes));
  CHECK_EQ(nodes, 4);
  CHECK_CUDA(cuGraphGetEdges(graph, nullptr, nullptr, nullptr, &edges));
  CHECK_EQ(edges, 4);
  CUgraphExec exec = nullptr;
  REQUIRE_CUDA(cuGraphInstantiate(&exec, graph, 0));
  for (int i = 0; i < 2; ++i) {
    REQUIRE_CUDA(cuGraphLaunch(exec, streams.second));
    REQUIRE_CUDA(cuStreamSynchronize(streams.second));
    CHECK_EQ(device.read(word), 103);
  }
}

TEST_CASE("a capture is invalidated by calls that cannot be captured") {
  Device device;
  CUdeviceptr word = device.allocate(4);
  Streams streams;
  CUgraph graph = nullptr;
  REQUIRE_CUDA(cuCtxSynchronize());
  REQUIRE_CUDA(cuStreamBeginCapture(streams.first, CU_STREAM_CAPTURE_MODE_GLOBAL));
  SUBCASE("waiting for it") { CHECK_ANSWER(cuStreamSynchronize(streams.first), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED); }
  SUBCASE("asking whether it is done") {
    CHECK_ANSWER(cuStreamQuery(streams.first), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  }
  SUBCASE("asking for an event of it") {
    CUevent event = nullptr;
    REQUIRE_CUDA(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    REQUIRE_CUDA(cuEventRecord(event, streams.first));
    CHECK_ANSWER(cuEventQuery(event), CUDA_ERROR_CAPTURED_EVENT);
  }
  SUBCASE("allocating") {
    CUdeviceptr other = 0;
    CHECK_ANSWER(cuMemAlloc(&other, 4), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  }
  CHECK_ANSWER(cuMemsetD8Async(word, 0, 4, streams.first), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  CHECK_ANSWER(cuStreamEndCapture(streams.first, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  CHECK_EQ(graph, nullptr);
  CHECK_CUDA(cuMemsetD8Async(word, 0, 4, streams.first));
  CHECK_CUDA(cuStreamSynchronize(streams.first));
}

TEST_CASE("a capture must be joined before it ends") {
  Device device;
  CUdeviceptr word = device.allocate(4);
  Streams streams;
  CUevent event = nullptr;
  REQUIRE_CUDA(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  REQUIRE_CUDA(cuStreamBeginCapture(streams.first, CU_STREAM_CAPTURE_MODE_RELAXED));
  REQUIRE_CUDA(cuMemsetD8Async(word, 0, 4, streams.first));
  REQUIRE_CUDA(cuEventRecord(event, streams.first));
  REQUIRE_CUDA(cuStreamWaitEvent(streams.second, event, 0));
  REQUIRE_CUDA(cuMemsetD8Async(word, 1, 4, streams.second));
  CUgraph graph = nullptr;
  CHECK_ANSWER(cuStreamEndCapture(streams.first, &graph), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
  CHECK_ANSWER(cuStreamEndCapture(streams.first, &graph), CUDA_ERROR_ILLEGAL_STATE);
  CHECK_ANSWER(cuStreamBeginCapture(CU_STREAM_LEGACY, CU_STREAM_CAPTURE_MODE_RELAXED),
               CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

TEST_CASE("child graphs, host functions and events are nodes") {
  Device device;
  CUmodule module = device.load();
  CUdeviceptr word = device.allocate(4);
  Streams streams;
  std::atomic<int> calls{0};
  CUDA_HOST_NODE_PARAMS host{[](void* counter) { ++*static_cast<std::atomic<int>*>(counter); }, &calls};
  CUgraph inner = nullptr, outer = nullptr;
  CUgraphNode node = nullptr, child = nullptr, record = nullptr;
  CUevent event = nullptr;
  REQUIRE_CUDA(cuEventCreate(&event, CU_EVENT_DEFAULT));
  REQUIRE_CUDA(cuGraphCreate(&inner, 0));
  REQUIRE_CUDA(cuGraphAddHostNode(&node, inner, nullptr, 0, &host));
  REQUIRE_CUDA(cuGraphCreate(&outer, 0));
  REQUIRE_CUDA(cuGraphAddChildGraphNode(&child, outer, nullptr, 0, inner));
  REQUIRE_CUDA(cuGraphAddEventRecordNode(&record, outer, &child, 1, event));
  CUgraphExec exec = nullptr;
  REQUIRE_CUDA(cuGraphInstantiate(&exec, outer, 0));
  REQUIRE_CUDA(cuGraphLaunch(exec, streams.first));
  REQUIRE_CUDA(cuEventSynchronize(event));
  CHECK_EQ(calls, 1);
  REQUIRE_CUDA(cuGraphLaunch(exec, streams.first));
  REQUIRE_CUDA(launch(function(module, "store"), streams.first, 1, word, 3u));
  REQUIRE_CUDA(cuStreamSynchronize(streams.first));
  CHECK_EQ(calls, 2);
}

TEST_CASE("an executable graph takes the parameters of a graph of the same shape, and refuses another shape") {
  Device device;
  CUdeviceptr word = device.allocate(4);
  Streams streams;
  CUgraphExec exec = nullptr;
  auto capture = [&](uint32_t value, bool twice) {
    CUgraph graph = nullptr;
    REQUIRE_CUDA(cuStreamBeginCapture(streams.first, CU_STREAM_CAPTURE_MODE_RELAXED));
    REQUIRE_CUDA(cuMemsetD32Async(word, value, 1, streams.first));
    if (twice) REQUIRE_CUDA(cuMemsetD32Async(word, value, 1, streams.first));
    REQUIRE_CUDA(cuStreamEndCapture(streams.first, &graph));
    return graph;
  };
  REQUIRE_CUDA(cuGraphInstantiate(&exec, capture(1, false), 0));
  CUgraphExecUpdateResultInfo info{};
  CHECK_CUDA(cuGraphExecUpdate(exec, capture(2, false), &info));
  CHECK_EQ(info.result, CU_GRAPH_EXEC_UPDATE_SUCCESS);
  REQUIRE_CUDA(cuGraphLaunch(exec, streams.first));
  REQUIRE_CUDA(cuStreamSynchronize(streams.first));
  CHECK_EQ(device.read(word), 2);
  CHECK_ANSWER(cuGraphExecUpdate(exec, capture(2, true), &info), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
  CHECK_EQ(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
}

TEST_CASE("an executable graph keeps its own copy of the parameters") {
  Device device;
  CUmodule module = device.load();
  CUdeviceptr word = device.allocate(4);
  Streams streams;
  CUgraph graph = nullptr;
  CUgraphNode store = nullptr;
  REQUIRE_CUDA(cuGraphCreate(&graph, 0));
  uint32_t value = 1;
  void* arguments[] = {&word, &value};
  CUDA_KERNEL_NODE_PARAMS params = kernelNode(function(module, "store"), arguments);
  REQUIRE_CUDA(cuGraphAddKernelNode(&store, graph, nullptr, 0, &params));
  CUgraphExec exec = nullptr;
  REQUIRE_CUDA(cuGraphInstantiate(&exec, graph, 0));
  value = 2;
  REQUIRE_CUDA(cuGraphExecKernelNodeSetParams(exec, store, &params));
  value = 3;
  REQUIRE_CUDA(cuGraphLaunch(exec, streams.first));
  REQUIRE_CUDA(cuGraphExecKernelNodeSetParams(exec, store, &params));  // for the next launch
  REQUIRE_CUDA(cuStreamSynchronize(streams.first));
  CHECK_EQ(device.read(word), 2);
}

TEST_CASE("nodes of an executable graph refuse changes that an update cannot make") {
  Device device;
  CUdeviceptr a = device.allocate(256), b = device.allocate(256);
  uint64_t* host = nullptr;
  REQUIRE_CUDA(cuMemAllocHost(reinterpret_cast<void**>(&host), 256));
  CUgraph graph = nullptr;
  CUgraphNode copy = nullptr, fill = nullptr, write = nullptr;
  REQUIRE_CUDA(cuGraphCreate(&graph, 0));
  CUDA_MEMCPY3D bytes{};
  bytes.srcMemoryType = bytes.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
  bytes.srcDevice = a;
  bytes.dstDevice = b;
  bytes.WidthInBytes = 16;
  bytes.Height = bytes.Depth = 1;
  REQUIRE_CUDA(cuGraphAddMemcpyNode(&copy, graph, nullptr, 0, &bytes, device.context));
  CUDA_MEMSET_NODE_PARAMS clear{a, 0, 7, 4, 4, 1};
  REQUIRE_CUDA(cuGraphAddMemsetNode(&fill, graph, nullptr, 0, &clear, device.context));
  CUstreamBatchMemOpParams word{};
  word.writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_64;
  word.writeValue.address = a;
  CUDA_BATCH_MEM_OP_NODE_PARAMS words{device.context, 1, &word, 0};
  REQUIRE_CUDA(cuGraphAddBatchMemOpNode(&write, graph, nullptr, 0, &words));
  CUgraphExec exec = nullptr;
  REQUIRE_CUDA(cuGraphInstantiate(&exec, graph, 0));

  bytes.dstDevice = b + 64;
  CHECK_CUDA(cuGraphExecMemcpyNodeSetParams(exec, copy, &bytes, device.context));
  bytes.srcDevice = reinterpret_cast<CUdeviceptr>(host);
  CHECK_CUDA(cuGraphExecMemcpyNodeSetParams(exec, copy, &bytes, device.context));  // any memory that the device can use
  bytes.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  CHECK_ANSWER(cuGraphExecMemcpyNodeSetParams(exec, copy, &bytes, device.context), CUDA_ERROR_INVALID_VALUE);
  bytes.srcMemoryType = CU_MEMORYTYPE_UNIFIED;
  bytes.srcDevice = a;
  bytes.Height = 2;
  bytes.srcPitch = bytes.dstPitch = 32;
  CHECK_ANSWER(cuGraphExecMemcpyNodeSetParams(exec, copy, &bytes, device.context), CUDA_ERROR_INVALID_VALUE);
  clear.width = 8;
  CHECK_CUDA(cuGraphExecMemsetNodeSetParams(exec, fill, &clear, device.context));
  clear.height = 2;
  clear.pitch = 64;
  CHECK_ANSWER(cuGraphExecMemsetNodeSetParams(exec, fill, &clear, device.context), CUDA_ERROR_INVALID_VALUE);
  word.writeValue.value64 = 5;
  CHECK_CUDA(cuGraphExecBatchMemOpNodeSetParams(exec, write, &words));
  word.writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
  CHECK_ANSWER(cuGraphExecBatchMemOpNodeSetParams(exec, write, &words), CUDA_ERROR_INVALID_VALUE);
  CHECK_ANSWER(cuGraphExecBatchMemOpNodeSetParams(exec, fill, &words), CUDA_ERROR_INVALID_VALUE);
}
