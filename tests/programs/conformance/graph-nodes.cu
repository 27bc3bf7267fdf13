// Graph nodes' parameters by the runtime: reading them, changing them in the graph and in an executable graph, and the result of a launch.
// Copies and fills: graph-copies.cu.
#include "../memory-node.h"
#include "graph-nodes.h"

#include <sys/mman.h>

SECTION(kernels) {
  setUp();
  int value = 7;
  void* arguments[] = {&words, &value};
  cudaKernelNodeParams parameters = kernelNode(add, arguments), got{};
  SAY(cudaGraphAddKernelNode(&node, graph, nullptr, 0, &parameters));
  value = 9;  // the node has its own copy
  SAY(cudaGraphKernelNodeGetParams(node, &got));
  VALUE(got.func == parameters.func);
  VALUE(got.gridDim.x * got.gridDim.y * got.gridDim.z);
  VALUE(got.blockDim.x * got.blockDim.y * got.blockDim.z);
  VALUE(got.sharedMemBytes);
  VALUE(got.extra != nullptr);
  VALUE(*static_cast<int**>(got.kernelParams[0]) == words);
  VALUE(*static_cast<int*>(got.kernelParams[1]));
  run();
  WORDS(words, {0});
  SAY(cudaGraphKernelNodeSetParams(node, &got));  // parameters that were read can be set
  run();
  WORDS(words, {0});
  parameters = kernelNode(multiply, arguments);
  value = 3;
  SAY(cudaGraphInstantiate(&executable, graph, 0));
  SAY(cudaGraphKernelNodeSetParams(node, &parameters));
  SAY(cudaGraphKernelNodeGetParams(node, &got));
  VALUE(got.func == parameters.func);
  VALUE(*static_cast<int*>(got.kernelParams[1]));
  launch();  // unchanged since it was instantiated
  WORDS(words, {0});
  run();
  WORDS(words, {0});
  SAY(cudaGraphExecKernelNodeSetParams(executable, node, &parameters));
  launch();
  WORDS(words, {0});
  parameters.gridDim.x = 0;
  SAY(cudaGraphExecKernelNodeSetParams(executable, node, &parameters));
  parameters.gridDim.x = 2;
  parameters.blockDim.x = 2048;
  SAY(cudaGraphExecKernelNodeSetParams(executable, node, &parameters));
  parameters.blockDim.x = 1;
  parameters.sharedMemBytes = 1 << 20;
  SAY(cudaGraphExecKernelNodeSetParams(executable, node, &parameters));
  parameters = kernelNode(nullptr, arguments);
  SAY(cudaGraphExecKernelNodeSetParams(executable, node, &parameters));
  SAY(cudaGraphKernelNodeSetParams(node, &parameters));
  parameters.func = host;
  SAY(cudaGraphExecKernelNodeSetParams(executable, node, &parameters));
  SAY(cudaGraphKernelNodeSetParams(node, &parameters));
  launch();  // refused calls have changed nothing
  WORDS(words, {0});
}

SECTION(kernelsWithBlocks) {
  setUp();
  struct {
    int* to;
    int value;
  } block = {words, 5};
  size_t bytes = sizeof(int*) + sizeof(int), padded = sizeof block;
  void* tooLong[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &block, CU_LAUNCH_PARAM_BUFFER_SIZE, &padded, CU_LAUNCH_PARAM_END};
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &block, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};
  cudaKernelNodeParams parameters = kernelNode(add, nullptr), got{};
  parameters.extra = tooLong;
  SAY(cudaGraphAddKernelNode(&second, graph, nullptr, 0, &parameters));
  parameters.extra = extra;
  SAY(cudaGraphAddKernelNode(&node, graph, nullptr, 0, &parameters));
  run();
  WORDS(words, {0});
  SAY(cudaGraphKernelNodeGetParams(node, &got));
  VALUE(got.kernelParams != nullptr);
  VALUE(got.extra != nullptr);
  SAY(cudaGraphKernelNodeSetParams(node, &got));
  run();
  WORDS(words, {0});
  void* arguments[] = {&block.to, &block.value};
  parameters.kernelParams = arguments;
  SAY(cudaGraphKernelNodeSetParams(node, &parameters));
  SAY(cudaGraphAddKernelNode(&second, graph, nullptr, 0, &parameters));
}

SECTION(hosts) {
  setUp();
  int counter = 0, other = 0;
  cudaHostNodeParams parameters{count, &counter}, got{};
  SAY(cudaGraphAddHostNode(&node, graph, nullptr, 0, &parameters));
  SAY(cudaGraphHostNodeGetParams(node, &got));
  VALUE(got.fn == count);
  VALUE(got.userData == &counter);
  run();
  VALUE(counter);
  SAY(cudaGraphInstantiate(&executable, graph, 0));
  parameters.userData = &other;
  SAY(cudaGraphHostNodeSetParams(node, &parameters));
  SAY(cudaGraphHostNodeGetParams(node, &got));
  VALUE(got.userData == &other);
  launch();
  VALUE(counter);
  VALUE(other);
  run();
  VALUE(other);
  SAY(cudaGraphExecHostNodeSetParams(executable, node, &parameters));
  launch();
  VALUE(other);
  parameters.fn = countTen;
  SAY(cudaGraphExecHostNodeSetParams(executable, node, &parameters));
  launch();
  VALUE(counter);
  VALUE(other);
  parameters.userData = nullptr;
  SAY(cudaGraphHostNodeSetParams(node, &parameters));
  parameters.fn = nullptr;
  SAY(cudaGraphHostNodeSetParams(node, &parameters));
  SAY(cudaGraphExecHostNodeSetParams(executable, node, &parameters));
  SAY(cudaGraphHostNodeGetParams(node, &got));
  VALUE(got.fn == countTen);
  VALUE(got.userData == nullptr);
  parameters = {count, &counter};
  CHECK(cudaGraphAddEmptyNode(&second, graph, nullptr, 0));
  SAY(cudaGraphHostNodeSetParams(second, &parameters));
  SAY(cudaGraphHostNodeGetParams(second, &got));
  SAY(cudaGraphExecHostNodeSetParams(executable, second, &parameters));
}

SECTION(events) {
  setUp();
  cudaEvent_t start, first, later, got = nullptr;
  float passed = 0;
  CHECK(cudaEventCreate(&start));
  CHECK(cudaEventCreate(&first));
  CHECK(cudaEventCreate(&later));
  CHECK(cudaEventRecord(start, stream));
  CHECK(cudaStreamSynchronize(stream));
  SAY(cudaGraphAddEventRecordNode(&node, graph, nullptr, 0, first));
  SAY(cudaGraphAddEventWaitNode(&second, graph, &node, 1, start));
  SAY(cudaGraphEventRecordNodeGetEvent(node, &got));
  VALUE(got == first);
  SAY(cudaGraphEventWaitNodeGetEvent(second, &got));
  VALUE(got == start);
  SAY(cudaGraphEventWaitNodeGetEvent(node, &got));
  SAY(cudaGraphEventRecordNodeGetEvent(second, &got));
  SAY(cudaEventElapsedTime(&passed, start, first));
  run();
  SAY(cudaEventElapsedTime(&passed, start, first));
  SAY(cudaGraphEventRecordNodeSetEvent(node, later));
  SAY(cudaGraphEventRecordNodeGetEvent(node, &got));
  VALUE(got == later);
  SAY(cudaEventElapsedTime(&passed, start, later));
  run();
  SAY(cudaEventElapsedTime(&passed, start, later));
  SAY(cudaGraphEventWaitNodeSetEvent(second, first));
  SAY(cudaGraphEventWaitNodeGetEvent(second, &got));
  VALUE(got == first);
  SAY(cudaGraphEventWaitNodeSetEvent(node, first));
  SAY(cudaGraphEventRecordNodeSetEvent(second, first));
  run();
  SAY(cudaGraphEventRecordNodeSetEvent(node, nullptr));
  SAY(cudaGraphEventWaitNodeSetEvent(second, nullptr));
  SAY(cudaGraphEventRecordNodeGetEvent(node, &got));
  VALUE(got == later);
}

// An event that is still pending, and one that was never recorded.
SECTION(eventsToCome) {
  setUp();
  static volatile bool goesOn = false;
  cudaEvent_t start, never;
  float passed = 0;
  CHECK(cudaEventCreate(&start));
  CHECK(cudaEventCreate(&never));
  CHECK(cudaLaunchHostFunc(
      stream,
      [](void*) {
        while (!goesOn) usleep(1000);
      },
      nullptr));
  CHECK(cudaEventRecord(start, stream));
  SAY(cudaEventElapsedTime(&passed, start, start));
  SAY(cudaEventElapsedTime(&passed, start, never));
  SAY(cudaEventElapsedTime(&passed, never, start));
  SAY(cudaEventQuery(never));
  goesOn = true;
  SAY(cudaStreamSynchronize(stream));
  SAY(cudaEventElapsedTime(&passed, start, never));
}

SECTION(eventsOfExecutables) {
  setUp();
  cudaEvent_t start, first, later;
  float passed = 0;
  CHECK(cudaEventCreate(&start));
  CHECK(cudaEventCreate(&first));
  CHECK(cudaEventCreate(&later));
  CHECK(cudaEventRecord(start, stream));
  CHECK(cudaStreamSynchronize(stream));
  CHECK(cudaGraphAddEventRecordNode(&node, graph, nullptr, 0, first));
  CHECK(cudaGraphAddEventWaitNode(&second, graph, &node, 1, start));
  SAY(cudaGraphInstantiate(&executable, graph, 0));
  SAY(cudaGraphExecEventRecordNodeSetEvent(executable, node, later));
  launch();
  SAY(cudaEventElapsedTime(&passed, start, first));
  SAY(cudaEventElapsedTime(&passed, start, later));
  SAY(cudaGraphExecEventWaitNodeSetEvent(executable, second, later));
  launch();
  SAY(cudaGraphExecEventWaitNodeSetEvent(executable, node, later));
  SAY(cudaGraphExecEventRecordNodeSetEvent(executable, second, later));
  SAY(cudaGraphExecEventRecordNodeSetEvent(executable, node, nullptr));
  SAY(cudaGraphExecEventWaitNodeSetEvent(executable, second, nullptr));
  cudaEvent_t timeless;
  CHECK(cudaEventCreateWithFlags(&timeless, cudaEventDisableTiming));
  SAY(cudaGraphExecEventRecordNodeSetEvent(executable, node, timeless));
  launch();
  SAY(cudaEventQuery(timeless));
}

SECTION(children) {
  setUp();
  int value = 2;
  void* arguments[] = {&words, &value};
  cudaKernelNodeParams parameters = kernelNode(add, arguments);
  cudaGraph_t child = nullptr, got = nullptr, other = nullptr;
  cudaGraphNode_t inner, copied = nullptr;
  size_t many = 1;
  CHECK(cudaGraphCreate(&child, 0));
  CHECK(cudaGraphAddKernelNode(&inner, child, nullptr, 0, &parameters));
  SAY(cudaGraphAddChildGraphNode(&node, graph, nullptr, 0, child));
  SAY(cudaGraphChildGraphNodeGetGraph(node, &got));
  VALUE(got == child);
  SAY(cudaGraphGetNodes(got, nullptr, &many));
  VALUE(many);
  SAY(cudaGraphGetNodes(got, &copied, &many));
  VALUE(copied == inner);
  run();
  WORDS(words, {0});
  value = 100;
  SAY(cudaGraphKernelNodeSetParams(inner, &parameters));  // the node has its own copy
  run();
  WORDS(words, {0});
  SAY(cudaGraphKernelNodeSetParams(copied, &parameters));
  SAY(cudaGraphInstantiate(&executable, graph, 0));
  launch();
  WORDS(words, {0});
  value = 1000;
  SAY(cudaGraphKernelNodeSetParams(inner, &parameters));
  SAY(cudaGraphExecChildGraphNodeSetParams(executable, node, child));
  launch();
  WORDS(words, {0});
  value = 10000;
  SAY(cudaGraphExecKernelNodeSetParams(executable, copied, &parameters));
  launch();
  WORDS(words, {0});
  SAY(cudaGraphExecKernelNodeSetParams(executable, inner, &parameters));
  CHECK(cudaGraphCreate(&other, 0));
  SAY(cudaGraphExecChildGraphNodeSetParams(executable, node, other));
  SAY(cudaGraphExecChildGraphNodeSetParams(executable, node, nullptr));
  CHECK(cudaGraphAddEmptyNode(&inner, other, nullptr, 0));
  SAY(cudaGraphExecChildGraphNodeSetParams(executable, node, other));
  CHECK(cudaGraphAddEmptyNode(&second, graph, nullptr, 0));
  SAY(cudaGraphExecChildGraphNodeSetParams(executable, second, child));
  SAY(cudaGraphChildGraphNodeGetGraph(second, &got));
  SAY(cudaGraphAddChildGraphNode(&second, graph, nullptr, 0, nullptr));
  SAY(cudaGraphDestroy(child));
  run();
  WORDS(words, {0});
}

// Every query of every type of node.
SECTION(wrongTypes) {
  setUp();
  int value = 1, counter = 0;
  void* arguments[] = {&words, &value};
  cudaKernelNodeParams kernel = kernelNode(add, arguments);
  cudaMemsetParams fill = fillOf(others, 3, 4, 3);
  cudaHostNodeParams function{count, &counter};
  cudaGraph_t child, part = nullptr;
  cudaEvent_t event, recorded = nullptr;
  CHECK(cudaGraphCreate(&child, 0));
  CHECK(cudaEventCreate(&event));
  cudaMemAllocNodeParams allocation = memoryNode(64);
  cudaGraphNode_t nodes[10];
  CHECK(cudaGraphAddKernelNode(&nodes[0], graph, nullptr, 0, &kernel));
  CHECK(cudaGraphAddMemcpyNode1D(&nodes[1], graph, nullptr, 0, others, words, 16, cudaMemcpyDeviceToDevice));
  CHECK(cudaGraphAddMemsetNode(&nodes[2], graph, nullptr, 0, &fill));
  CHECK(cudaGraphAddHostNode(&nodes[3], graph, nullptr, 0, &function));
  CHECK(cudaGraphAddChildGraphNode(&nodes[4], graph, nullptr, 0, child));
  CHECK(cudaGraphAddEmptyNode(&nodes[5], graph, nullptr, 0));
  CHECK(cudaGraphAddEventWaitNode(&nodes[6], graph, nullptr, 0, event));
  CHECK(cudaGraphAddEventRecordNode(&nodes[7], graph, nullptr, 0, event));
  CHECK(cudaGraphAddMemAllocNode(&nodes[8], graph, nullptr, 0, &allocation));
  CHECK(cudaGraphAddMemFreeNode(&nodes[9], graph, &nodes[8], 1, allocation.dptr));
  for (cudaGraphNode_t each : nodes) {
    cudaGraphNodeType type{};
    SAY(cudaGraphNodeGetType(each, &type));
    VALUE(type);
    cudaMemcpy3DParms box{};
    cudaMemAllocNodeParams memory{};
    void* freed = nullptr;
    sayNumbers("what of a kernel, copy, fill, function, child, wait, record, allocation, free",
               {cudaGraphKernelNodeGetParams(each, &kernel), cudaGraphMemcpyNodeGetParams(each, &box),
                cudaGraphMemsetNodeGetParams(each, &fill), cudaGraphHostNodeGetParams(each, &function),
                cudaGraphChildGraphNodeGetGraph(each, &part), cudaGraphEventWaitNodeGetEvent(each, &recorded),
                cudaGraphEventRecordNodeGetEvent(each, &recorded), cudaGraphMemAllocNodeGetParams(each, &memory),
                cudaGraphMemFreeNodeGetParams(each, &freed)});
    sayNumbers("set to a kernel, row, fill, function, wait, record",
               {cudaGraphKernelNodeSetParams(each, &kernel),
                cudaGraphMemcpyNodeSetParams1D(each, others, words, 16, cudaMemcpyDeviceToDevice),
                cudaGraphMemsetNodeSetParams(each, &fill), cudaGraphHostNodeSetParams(each, &function),
                cudaGraphEventWaitNodeSetEvent(each, event), cudaGraphEventRecordNodeSetEvent(each, event)});
  }
  SAY(cudaGetLastError());
}

SECTION(leftOutOfHost) {
  setUp();
  CHECK(cudaGraphAddMemcpyNode1D(&node, graph, nullptr, 0, others, host + 4, 16, cudaMemcpyHostToDevice));
  CHECK(cudaGraphAddMemcpyNode1D(&second, graph, nullptr, 0, others + 8, pinned + 4, 16, cudaMemcpyHostToDevice));
  SAY(cudaGraphInstantiate(&executable, graph, 0));
  SAY(cudaGraphNodeSetEnabled(executable, node, 0));
  SAY(cudaGraphNodeSetEnabled(executable, second, 0));
  launch();
  WORDS(others, {0, 8});
  SAY(cudaGraphNodeSetEnabled(executable, node, 1));
  launch();
  WORDS(others, {0, 8});
}

SECTION(leftOut) {
  setUp();
  cudaMemsetParams fill = fillOf(others, 3, 4, 3);
  int counter = 0;
  cudaHostNodeParams function{count, &counter};
  cudaGraphNode_t third, fourth;
  CHECK(cudaGraphAddMemsetNode(&node, graph, nullptr, 0, &fill));
  CHECK(cudaGraphAddMemcpyNode1D(&second, graph, &node, 1, others + 8, words + 4, 16, cudaMemcpyDeviceToDevice));
  CHECK(cudaGraphAddHostNode(&third, graph, &second, 1, &function));
  CHECK(cudaGraphAddEmptyNode(&fourth, graph, nullptr, 0));
  SAY(cudaGraphInstantiate(&executable, graph, 0));
  unsigned enabled = 9;
  for (cudaGraphNode_t each : {node, second, third, fourth}) {
    SAY(cudaGraphNodeSetEnabled(executable, each, 0));
    SAY(cudaGraphNodeGetEnabled(executable, each, &enabled));
    VALUE(enabled);
  }
  launch();
  WORDS(others, {0, 8});
  VALUE(counter);
  fill.value = 6;
  SAY(cudaGraphExecMemsetNodeSetParams(executable, node, &fill));
  launch();
  WORDS(others, {0});
  SAY(cudaGraphNodeSetEnabled(executable, node, 7));
  SAY(cudaGraphNodeGetEnabled(executable, node, &enabled));
  VALUE(enabled);
  launch();
  WORDS(others, {0});
}

// Nodes other than those that were instantiated: later ones, ones of another graph, and those of a clone.
SECTION(otherNodes) {
  setUp();
  cudaMemsetParams fill = fillOf(others, 3, 4, 3);
  CHECK(cudaGraphAddMemsetNode(&node, graph, nullptr, 0, &fill));
  CHECK(cudaGraphInstantiate(&executable, graph, 0));
  fill.value = 4;
  CHECK(cudaGraphAddMemsetNode(&second, graph, nullptr, 0, &fill));
  SAY(cudaGraphExecMemsetNodeSetParams(executable, second, &fill));
  cudaGraph_t clone;
  cudaGraphNode_t copied = nullptr;
  CHECK(cudaGraphClone(&clone, graph));
  SAY(cudaGraphNodeFindInClone(&copied, node, clone));
  SAY(cudaGraphExecMemsetNodeSetParams(executable, copied, &fill));
  launch();
  WORDS(others, {0});
  SAY(cudaGraphMemsetNodeSetParams(copied, &fill));
  cudaMemsetParams got{};
  SAY(cudaGraphMemsetNodeGetParams(node, &got));
  VALUE(got.value);
  SAY(cudaGraphMemsetNodeGetParams(copied, &got));
  VALUE(got.value);
  // An executable graph keeps its own copy of a node.
  SAY(cudaGraphDestroyNode(node));
  launch();
  WORDS(others, {0});
  SAY(cudaGraphDestroy(graph));
  launch();
}

SECTION(printed) {
  setUp();
  int value = 1;
  void* arguments[] = {&words, &value};
  cudaKernelNodeParams kernel = kernelNode(add, arguments);
  CHECK(cudaGraphAddKernelNode(&node, graph, nullptr, 0, &kernel));
  CHECK(cudaGraphAddEmptyNode(&second, graph, &node, 1));
  int file = memfd_create("graph", 0);
  char path[64], text[16] = {};
  std::snprintf(path, sizeof path, "/proc/self/fd/%d", file);
  SAY(cudaGraphDebugDotPrint(graph, path, 0));
  VALUE(pread(file, text, 8, 0));
  VALUE(std::strcmp(text, "digraph ") == 0);
  SAY(cudaGraphDebugDotPrint(graph, path, cudaGraphDebugDotFlagsVerbose));
  SAY(cudaGraphDebugDotPrint(graph, path, 1u << 31));
  SAY(cudaGraphDebugDotPrint(graph, "/nowhere/at-all", 0));
  SAY(cudaGraphDebugDotPrint(graph, "", 0));
}

// Null for a required pointer: one per section, because the driver may crash.
#define NOTHING(name, call)                                                                                 \
  SECTION(name) {                                                                                           \
    setUp();                                                                                                \
    CHECK(cudaGraphAddMemcpyNode1D(&node, graph, nullptr, 0, others, words, 16, cudaMemcpyDeviceToDevice)); \
    CHECK(cudaGraphInstantiate(&executable, graph, 0));                                                     \
    SAY(call);                                                                                              \
  }

NOTHING(nothingCopyGet, cudaGraphMemcpyNodeGetParams(node, nullptr))
NOTHING(nothingCopySet, cudaGraphMemcpyNodeSetParams(node, nullptr))
NOTHING(nothingCopyExec, cudaGraphExecMemcpyNodeSetParams(executable, node, nullptr))
NOTHING(nothingCopyAdd, cudaGraphAddMemcpyNode(&second, graph, nullptr, 0, nullptr))
NOTHING(nothingFillGet, cudaGraphMemsetNodeGetParams(node, nullptr))
NOTHING(nothingFillSet, cudaGraphMemsetNodeSetParams(node, nullptr))
NOTHING(nothingFillExec, cudaGraphExecMemsetNodeSetParams(executable, node, nullptr))
NOTHING(nothingFillAdd, cudaGraphAddMemsetNode(&second, graph, nullptr, 0, nullptr))
NOTHING(nothingHostGet, cudaGraphHostNodeGetParams(node, nullptr))
NOTHING(nothingHostSet, cudaGraphHostNodeSetParams(node, nullptr))
NOTHING(nothingHostExec, cudaGraphExecHostNodeSetParams(executable, node, nullptr))
NOTHING(nothingHostAdd, cudaGraphAddHostNode(&second, graph, nullptr, 0, nullptr))
NOTHING(nothingKernelGet, cudaGraphKernelNodeGetParams(node, nullptr))
NOTHING(nothingKernelSet, cudaGraphKernelNodeSetParams(node, nullptr))
NOTHING(nothingRecordGet, cudaGraphEventRecordNodeGetEvent(node, nullptr))
NOTHING(nothingWaitGet, cudaGraphEventWaitNodeGetEvent(node, nullptr))
NOTHING(nothingChildGet, cudaGraphChildGraphNodeGetGraph(node, nullptr))
NOTHING(nothingAny, cudaGraphNodeSetParams(node, nullptr))
NOTHING(nothingAnyExec, cudaGraphExecNodeSetParams(executable, node, nullptr))
NOTHING(nothingAnyAdd, cudaGraphAddNode(&second, graph, nullptr, nullptr, 0, nullptr))
NOTHING(nothingNode, cudaGraphMemcpyNodeSetParams1D(nullptr, others, words, 16, cudaMemcpyDeviceToDevice))
NOTHING(nothingNodeExec, cudaGraphExecMemcpyNodeSetParams1D(executable, nullptr, others, words, 16, cudaMemcpyDeviceToDevice))
NOTHING(nothingExec, cudaGraphExecMemcpyNodeSetParams1D(nullptr, node, others, words, 16, cudaMemcpyDeviceToDevice))
NOTHING(nothingPrinted, cudaGraphDebugDotPrint(nullptr, "/dev/null", 0))
NOTHING(nothingPath, cudaGraphDebugDotPrint(graph, nullptr, 0))
NOTHING(nothingSymbol, cudaGraphMemcpyNodeSetParamsToSymbol(node, nullptr, words, 4, 0, cudaMemcpyDeviceToDevice))

// A kernel with parameters that is given none.
SECTION(kernelWithoutArguments) {
  setUp();
  cudaKernelNodeParams parameters = kernelNode(add, nullptr);
  SAY(cudaGraphAddKernelNode(&node, graph, nullptr, 0, &parameters));
}

// The graph of a child graph node belongs to the node.
SECTION(ownedGraph) {
  setUp();
  cudaGraph_t child = nullptr, got = nullptr;
  CHECK(cudaGraphCreate(&child, 0));
  CHECK(cudaGraphAddEmptyNode(&second, child, nullptr, 0));
  CHECK(cudaGraphAddChildGraphNode(&node, graph, nullptr, 0, child));
  CHECK(cudaGraphChildGraphNodeGetGraph(node, &got));
  SAY(cudaGraphDestroy(got));
}
