// Parameters of graph nodes by the runtime: what is read of a node, what it and its copy in an executable graph can be set to,
// and what a launch then does.
#include "../memory-node.h"
#include "graph-nodes.h"

#include <sys/mman.h>

__device__ int variable[4] = {10, 20, 30, 40};
__constant__ int constant[4] = {1, 2, 3, 4};
__managed__ int managed[4] = {5, 6, 7, 8};

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
  SAY(cudaGraphKernelNodeSetParams(node, &got));  // what was read can be set
  run();
  WORDS(words, {0});
  parameters = kernelNode(multiply, arguments);
  value = 3;
  SAY(cudaGraphInstantiate(&executable, graph, 0));
  SAY(cudaGraphKernelNodeSetParams(node, &parameters));
  SAY(cudaGraphKernelNodeGetParams(node, &got));
  VALUE(got.func == parameters.func);
  VALUE(*static_cast<int*>(got.kernelParams[1]));
  launch();  // as it was instantiated
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
  launch();  // what was refused has changed nothing
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

SECTION(rows) {
  setUp();
  SAY(cudaGraphAddMemcpyNode1D(&node, graph, nullptr, 0, others, words + 4, 16, cudaMemcpyDeviceToDevice));
  showCopy(node);
  run();
  WORDS(others, {0, 3, 4});
  SAY(cudaGraphMemcpyNodeSetParams1D(node, others, words + 8, 20, cudaMemcpyDeviceToDevice));
  showCopy(node);
  run();
  WORDS(others, {0, 4});
  SAY(cudaGraphMemcpyNodeSetParams1D(node, others, host + 40, 8, cudaMemcpyHostToDevice));
  showCopy(node);
  run();
  WORDS(others, {1});
  SAY(cudaGraphMemcpyNodeSetParams1D(node, host, words + 20, 8, cudaMemcpyDeviceToHost));
  showCopy(node);
  run();
  VALUE(host[0]);
  VALUE(host[1]);
  SAY(cudaGraphMemcpyNodeSetParams1D(node, host, host + 30, 8, cudaMemcpyHostToHost));
  showCopy(node);
  run();
  VALUE(host[0]);
  SAY(cudaGraphMemcpyNodeSetParams1D(node, others, words + 11, 4, cudaMemcpyDefault));
  showCopy(node);
  run();
  WORDS(others, {0});
  SAY(cudaGraphMemcpyNodeSetParams1D(node, others, words, 0, cudaMemcpyDeviceToDevice));
  SAY(cudaGraphMemcpyNodeSetParams1D(node, others, nullptr, 4, cudaMemcpyDeviceToDevice));
  SAY(cudaGraphMemcpyNodeSetParams1D(node, nullptr, words, 4, cudaMemcpyDeviceToDevice));
  SAY(cudaGraphMemcpyNodeSetParams1D(node, others, words, 4, static_cast<cudaMemcpyKind>(7)));
  SAY(cudaGraphMemcpyNodeSetParams1D(node, others, words, 4, cudaMemcpyHostToDevice));
  SAY(cudaGraphMemcpyNodeSetParams1D(node, host, host + 8, 4, cudaMemcpyDeviceToDevice));
  showCopy(node);
}

SECTION(rowsOfExecutables) {
  setUp();
  CHECK(cudaGraphAddMemcpyNode1D(&node, graph, nullptr, 0, others, words + 4, 16, cudaMemcpyDeviceToDevice));
  SAY(cudaGraphInstantiate(&executable, graph, 0));
  SAY(cudaGraphExecMemcpyNodeSetParams1D(executable, node, others, words + 8, 16, cudaMemcpyDeviceToDevice));
  launch();
  WORDS(others, {0});
  SAY(cudaGraphExecMemcpyNodeSetParams1D(executable, node, others + 2, words + 16, 24, cudaMemcpyDeviceToDevice));
  launch();
  WORDS(others, {1, 2, 7, 8});
  SAY(cudaGraphExecMemcpyNodeSetParams1D(executable, node, others, words + 1, 4, cudaMemcpyDefault));
  launch();
  WORDS(others, {0});
  SAY(cudaGraphExecMemcpyNodeSetParams1D(executable, node, others, words, 0, cudaMemcpyDeviceToDevice));
  SAY(cudaGraphExecMemcpyNodeSetParams1D(executable, node, others, host, 16, cudaMemcpyHostToDevice));
  SAY(cudaGraphExecMemcpyNodeSetParams1D(executable, node, others, pinned, 16, cudaMemcpyHostToDevice));
  SAY(cudaGraphExecMemcpyNodeSetParams1D(executable, node, host, words, 16, cudaMemcpyDeviceToHost));
  SAY(cudaGraphExecMemcpyNodeSetParams1D(executable, node, others, words, 16, static_cast<cudaMemcpyKind>(-1)));
  SAY(cudaGraphExecMemcpyNodeSetParams1D(executable, node, nullptr, words, 16, cudaMemcpyDeviceToDevice));
  launch();
  WORDS(others, {0});
  SAY(cudaGraphAddEmptyNode(&second, graph, nullptr, 0));
  SAY(cudaGraphExecMemcpyNodeSetParams1D(executable, second, others, words, 16, cudaMemcpyDeviceToDevice));
  SAY(cudaGraphMemcpyNodeSetParams1D(second, others, words, 16, cudaMemcpyDeviceToDevice));
}

SECTION(rowsOfHost) {
  setUp();
  CHECK(cudaGraphAddMemcpyNode1D(&node, graph, nullptr, 0, words, pinned, 16, cudaMemcpyHostToDevice));
  CHECK(cudaGraphAddMemcpyNode1D(&second, graph, &node, 1, pinned + 32, words, 16, cudaMemcpyDeviceToHost));
  SAY(cudaGraphInstantiate(&executable, graph, 0));
  launch();
  VALUE(pinned[32]);
  SAY(cudaGraphExecMemcpyNodeSetParams1D(executable, node, words, pinned + 8, 16, cudaMemcpyHostToDevice));
  launch();
  VALUE(pinned[32]);
  SAY(cudaGraphExecMemcpyNodeSetParams1D(executable, second, pinned + 40, words, 16, cudaMemcpyDeviceToHost));
  launch();
  VALUE(pinned[40]);
  SAY(cudaGraphExecMemcpyNodeSetParams1D(executable, node, words, host + 5, 16, cudaMemcpyHostToDevice));
  launch();
  VALUE(pinned[40]);
  SAY(cudaGraphExecMemcpyNodeSetParams1D(executable, node, words, others, 16, cudaMemcpyDeviceToDevice));
  SAY(cudaGraphExecMemcpyNodeSetParams1D(executable, node, pinned, words, 16, cudaMemcpyDeviceToHost));
}

SECTION(boxes) {
  setUp();
  cudaMemcpy3DParms box = copyOf(others, words, 32, make_cudaExtent(8, 2, 2), cudaMemcpyDeviceToDevice);
  SAY(cudaGraphAddMemcpyNode(&node, graph, nullptr, 0, &box));
  showCopy(node);
  run();
  WORDS(others, {0, 1, 2, 8, 9, 16, 24, 25, 26});
  box.srcPos = make_cudaPos(4, 1, 0);
  box.dstPos = make_cudaPos(8, 0, 1);
  box.extent = make_cudaExtent(4, 1, 1);
  SAY(cudaGraphMemcpyNodeSetParams(node, &box));
  showCopy(node);
  run();
  WORDS(others, {18});
  cudaMemcpy3DParms got{};
  SAY(cudaGraphMemcpyNodeGetParams(node, &got));
  VALUE(got.srcPtr.ptr == words);
  VALUE(got.dstPtr.ptr == others);
  SAY(cudaGraphMemcpyNodeSetParams(node, &got));
  run();
  box = copyOf(others, words, 32, make_cudaExtent(40, 2, 1), cudaMemcpyDeviceToDevice);
  SAY(cudaGraphMemcpyNodeSetParams(node, &box));
  box = copyOf(others, words, 32, make_cudaExtent(0, 2, 1), cudaMemcpyDeviceToDevice);
  SAY(cudaGraphMemcpyNodeSetParams(node, &box));
  SAY(cudaGraphAddMemcpyNode(&second, graph, nullptr, 0, &box));
  box = copyOf(others, words, 32, make_cudaExtent(8, 0, 1), cudaMemcpyDeviceToDevice);
  SAY(cudaGraphMemcpyNodeSetParams(node, &box));
  box = copyOf(others, words, 32, make_cudaExtent(8, 2, 0), cudaMemcpyDeviceToDevice);
  SAY(cudaGraphMemcpyNodeSetParams(node, &box));
  box = copyOf(nullptr, words, 32, make_cudaExtent(8, 2, 1), cudaMemcpyDeviceToDevice);
  SAY(cudaGraphMemcpyNodeSetParams(node, &box));
  box = copyOf(others, words, 32, make_cudaExtent(8, 2, 1), static_cast<cudaMemcpyKind>(9));
  SAY(cudaGraphMemcpyNodeSetParams(node, &box));
  SAY(cudaGraphAddMemcpyNode(&second, graph, nullptr, 0, &box));
  showCopy(node);
}

SECTION(boxesOfExecutables) {
  setUp();
  cudaMemcpy3DParms box = copyOf(others, words, 32, make_cudaExtent(8, 2, 2), cudaMemcpyDeviceToDevice);
  cudaMemcpy3DParms row = copyOf(others + 32, words, 32, make_cudaExtent(8, 1, 1), cudaMemcpyDeviceToDevice);
  CHECK(cudaGraphAddMemcpyNode(&node, graph, nullptr, 0, &box));
  CHECK(cudaGraphAddMemcpyNode(&second, graph, &node, 1, &row));
  SAY(cudaGraphInstantiate(&executable, graph, 0));
  launch();
  WORDS(others, {24, 32});
  SAY(cudaGraphExecMemcpyNodeSetParams(executable, node, &box));
  SAY(cudaGraphExecMemcpyNodeSetParams(executable, node, &row));
  SAY(cudaGraphExecMemcpyNodeSetParams(executable, second, &box));
  row.srcPtr.ptr = words + 3;
  SAY(cudaGraphExecMemcpyNodeSetParams(executable, second, &row));
  launch();
  WORDS(others, {32});
  row.srcPos = make_cudaPos(4, 0, 0);
  SAY(cudaGraphExecMemcpyNodeSetParams(executable, second, &row));
  launch();
  WORDS(others, {32});
  row.extent.width = 0;
  SAY(cudaGraphExecMemcpyNodeSetParams(executable, second, &row));
  row.extent.width = 8;
  row.kind = cudaMemcpyHostToDevice;
  row.srcPtr.ptr = host;
  SAY(cudaGraphExecMemcpyNodeSetParams(executable, second, &row));
  SAY(cudaStreamSynchronize(stream));
}

SECTION(boxesOfArrays) {
  setUp();
  cudaChannelFormatDesc format = cudaCreateChannelDesc<int>();
  cudaArray_t array = nullptr, other = nullptr;
  CHECK(cudaMallocArray(&array, &format, 8, 4));
  CHECK(cudaMallocArray(&other, &format, 8, 4));
  cudaMemcpy3DParms in{};
  in.srcPtr = make_cudaPitchedPtr(words, 32, 8, 4);
  in.dstArray = array;
  in.dstPos = make_cudaPos(1, 1, 0);
  in.extent = make_cudaExtent(4, 2, 1);
  in.kind = cudaMemcpyDeviceToDevice;
  SAY(cudaGraphAddMemcpyNode(&node, graph, nullptr, 0, &in));
  showCopy(node);
  cudaMemcpy3DParms out{};
  out.srcArray = array;
  out.srcPos = make_cudaPos(2, 1, 0);
  out.dstPtr = make_cudaPitchedPtr(host, 32, 8, 4);
  out.extent = make_cudaExtent(3, 2, 1);
  out.kind = cudaMemcpyDeviceToHost;
  SAY(cudaGraphAddMemcpyNode(&second, graph, &node, 1, &out));
  showCopy(second);
  SAY(cudaGraphInstantiate(&executable, graph, 0));
  launch();
  WORDS(host, {0, 1, 2, 8, 9, 10});
  SAY(cudaGraphExecMemcpyNodeSetParams(executable, second, &out));
  cudaMemcpy3DParms between{};
  between.srcArray = array;
  between.dstArray = other;
  between.extent = make_cudaExtent(8, 4, 1);
  between.kind = cudaMemcpyDeviceToDevice;
  cudaGraphNode_t third;
  SAY(cudaGraphAddMemcpyNode(&third, graph, &second, 1, &between));
  showCopy(third);
  between.extent = make_cudaExtent(9, 4, 1);
  SAY(cudaGraphMemcpyNodeSetParams(third, &between));
  between.extent = make_cudaExtent(8, 4, 1);
  between.srcPos = make_cudaPos(1, 0, 0);
  SAY(cudaGraphMemcpyNodeSetParams(third, &between));
  between.srcPos = make_cudaPos(0, 0, 0);
  between.srcPtr = make_cudaPitchedPtr(words, 32, 8, 4);
  SAY(cudaGraphMemcpyNodeSetParams(third, &between));
}

SECTION(toSymbols) {
  setUp();
  SAY(cudaGraphAddMemcpyNodeToSymbol(&node, graph, nullptr, 0, variable, words + 5, 8, 4, cudaMemcpyDeviceToDevice));
  showCopy(node);
  run();
  int got[4] = {};
  SAY(cudaMemcpyFromSymbol(got, variable, 16));
  ARRAY(got, 4);
  SAY(cudaGraphMemcpyNodeSetParamsToSymbol(node, variable, host + 50, 4, 12, cudaMemcpyHostToDevice));
  run();
  SAY(cudaMemcpyFromSymbol(got, variable, 16));
  ARRAY(got, 4);
  SAY(cudaGraphMemcpyNodeSetParamsToSymbol(node, constant, words + 60, 8, 0, cudaMemcpyDeviceToDevice));
  run();
  SAY(cudaMemcpyFromSymbol(got, constant, 16));
  ARRAY(got, 4);
  SAY(cudaGraphMemcpyNodeSetParamsToSymbol(node, managed, words + 60, 4, 8, cudaMemcpyDefault));
  run();
  VALUE(managed[2]);
  SAY(cudaGraphMemcpyNodeSetParamsToSymbol(node, variable, words, 17, 0, cudaMemcpyDeviceToDevice));
  SAY(cudaGraphMemcpyNodeSetParamsToSymbol(node, variable, words, 8, 12, cudaMemcpyDeviceToDevice));
  SAY(cudaGraphMemcpyNodeSetParamsToSymbol(node, variable, words, 0, 0, cudaMemcpyDeviceToDevice));
  SAY(cudaGraphMemcpyNodeSetParamsToSymbol(node, variable, host, 4, 0, cudaMemcpyDeviceToHost));
  SAY(cudaGraphMemcpyNodeSetParamsToSymbol(node, variable, host, 4, 0, cudaMemcpyHostToHost));
  SAY(cudaGraphMemcpyNodeSetParamsToSymbol(node, variable, words, 4, 0, static_cast<cudaMemcpyKind>(9)));
  SAY(cudaGraphMemcpyNodeSetParamsToSymbol(node, host, words, 4, 0, cudaMemcpyDeviceToDevice));
  SAY(cudaGraphMemcpyNodeSetParamsToSymbol(node, variable, nullptr, 4, 0, cudaMemcpyDeviceToDevice));
  SAY(cudaGraphAddMemcpyNodeToSymbol(&second, graph, nullptr, 0, variable, words, 4, 16, cudaMemcpyDeviceToDevice));
  SAY(cudaGraphAddMemcpyNodeToSymbol(&second, graph, nullptr, 0, host, words, 4, 0, cudaMemcpyDeviceToDevice));
  SAY(cudaGraphAddMemcpyNodeToSymbol(&second, graph, nullptr, 0, variable, words, 4, 0, cudaMemcpyDeviceToHost));
  SAY(cudaGraphAddMemcpyNodeToSymbol(&second, graph, nullptr, 0, variable, host, 4, 0, cudaMemcpyHostToHost));
}

SECTION(toSymbolsOfExecutables) {
  setUp();
  int got[4] = {};
  CHECK(cudaGraphAddMemcpyNodeToSymbol(&node, graph, nullptr, 0, variable, words + 5, 8, 4, cudaMemcpyDeviceToDevice));
  SAY(cudaGraphInstantiate(&executable, graph, 0));
  SAY(cudaGraphExecMemcpyNodeSetParamsToSymbol(executable, node, variable, words + 9, 4, 0, cudaMemcpyDeviceToDevice));
  launch();
  SAY(cudaMemcpyFromSymbol(got, variable, 16));
  ARRAY(got, 4);
  SAY(cudaGraphExecMemcpyNodeSetParamsToSymbol(executable, node, constant, words + 9, 4, 8, cudaMemcpyDeviceToDevice));
  launch();
  SAY(cudaMemcpyFromSymbol(got, constant, 16));
  ARRAY(got, 4);
  SAY(cudaGraphExecMemcpyNodeSetParamsToSymbol(executable, node, variable, host, 4, 0, cudaMemcpyHostToDevice));
  SAY(cudaGraphExecMemcpyNodeSetParamsToSymbol(executable, node, variable, words, 4, 13, cudaMemcpyDeviceToDevice));
  SAY(cudaGraphExecMemcpyNodeSetParamsToSymbol(executable, node, host, words, 4, 0, cudaMemcpyDeviceToDevice));
  SAY(cudaGraphExecMemcpyNodeSetParamsToSymbol(executable, node, variable, words, 4, 0, cudaMemcpyDeviceToHost));
  launch();
  CHECK(cudaGraphAddEmptyNode(&second, graph, nullptr, 0));
  SAY(cudaGraphExecMemcpyNodeSetParamsToSymbol(executable, second, variable, words, 4, 0, cudaMemcpyDeviceToDevice));
  SAY(cudaGraphMemcpyNodeSetParamsToSymbol(second, variable, words, 4, 0, cudaMemcpyDeviceToDevice));
}

SECTION(fromSymbols) {
  setUp();
  SAY(cudaGraphAddMemcpyNodeFromSymbol(&node, graph, nullptr, 0, others, variable, 8, 4, cudaMemcpyDeviceToDevice));
  showCopy(node);
  run();
  WORDS(others, {0, 1, 2});
  SAY(cudaGraphMemcpyNodeSetParamsFromSymbol(node, host, constant, 8, 8, cudaMemcpyDeviceToHost));
  showCopy(node);
  run();
  VALUE(host[0]);
  VALUE(host[1]);
  SAY(cudaGraphMemcpyNodeSetParamsFromSymbol(node, pinned, managed, 4, 12, cudaMemcpyDefault));
  run();
  VALUE(pinned[0]);
  SAY(cudaGraphMemcpyNodeSetParamsFromSymbol(node, others, variable, 17, 0, cudaMemcpyDeviceToDevice));
  SAY(cudaGraphMemcpyNodeSetParamsFromSymbol(node, others, variable, 8, 12, cudaMemcpyDeviceToDevice));
  SAY(cudaGraphMemcpyNodeSetParamsFromSymbol(node, others, variable, 0, 0, cudaMemcpyDeviceToDevice));
  SAY(cudaGraphMemcpyNodeSetParamsFromSymbol(node, host, variable, 4, 0, cudaMemcpyHostToDevice));
  SAY(cudaGraphMemcpyNodeSetParamsFromSymbol(node, host, variable, 4, 0, cudaMemcpyHostToHost));
  SAY(cudaGraphMemcpyNodeSetParamsFromSymbol(node, others, variable, 4, 0, static_cast<cudaMemcpyKind>(9)));
  SAY(cudaGraphMemcpyNodeSetParamsFromSymbol(node, others, host, 4, 0, cudaMemcpyDeviceToDevice));
  SAY(cudaGraphMemcpyNodeSetParamsFromSymbol(node, nullptr, variable, 4, 0, cudaMemcpyDeviceToDevice));
  SAY(cudaGraphAddMemcpyNodeFromSymbol(&second, graph, nullptr, 0, others, variable, 4, 16, cudaMemcpyDeviceToDevice));
  SAY(cudaGraphAddMemcpyNodeFromSymbol(&second, graph, nullptr, 0, others, host, 4, 0, cudaMemcpyDeviceToDevice));
  SAY(cudaGraphAddMemcpyNodeFromSymbol(&second, graph, nullptr, 0, host, variable, 4, 0, cudaMemcpyHostToDevice));
}

SECTION(fromSymbolsOfExecutables) {
  setUp();
  CHECK(cudaGraphAddMemcpyNodeFromSymbol(&node, graph, nullptr, 0, others, variable, 8, 4, cudaMemcpyDeviceToDevice));
  SAY(cudaGraphInstantiate(&executable, graph, 0));
  SAY(cudaGraphExecMemcpyNodeSetParamsFromSymbol(executable, node, others, variable, 4, 12, cudaMemcpyDeviceToDevice));
  launch();
  WORDS(others, {0, 1});
  SAY(cudaGraphExecMemcpyNodeSetParamsFromSymbol(executable, node, others, constant, 4, 12, cudaMemcpyDeviceToDevice));
  launch();
  WORDS(others, {0});
  SAY(cudaGraphExecMemcpyNodeSetParamsFromSymbol(executable, node, host, variable, 4, 0, cudaMemcpyDeviceToHost));
  SAY(cudaGraphExecMemcpyNodeSetParamsFromSymbol(executable, node, others, variable, 4, 13, cudaMemcpyDeviceToDevice));
  SAY(cudaGraphExecMemcpyNodeSetParamsFromSymbol(executable, node, others, host, 4, 0, cudaMemcpyDeviceToDevice));
  SAY(cudaGraphExecMemcpyNodeSetParamsFromSymbol(executable, node, others, variable, 4, 0, cudaMemcpyHostToDevice));
  launch();
  CHECK(cudaGraphAddEmptyNode(&second, graph, nullptr, 0));
  SAY(cudaGraphExecMemcpyNodeSetParamsFromSymbol(executable, second, others, variable, 4, 0, cudaMemcpyDeviceToDevice));
  SAY(cudaGraphMemcpyNodeSetParamsFromSymbol(second, others, variable, 4, 0, cudaMemcpyDeviceToDevice));
}

SECTION(fills) {
  setUp();
  cudaMemsetParams fill = fillOf(others, 0x01020304, 4, 3), got{};
  SAY(cudaGraphAddMemsetNode(&node, graph, nullptr, 0, &fill));
  showFill(node);
  SAY(cudaGraphMemsetNodeGetParams(node, &got));
  VALUE(got.dst == others);
  run();
  WORDS(others, {2, 3});
  SAY(cudaGraphMemsetNodeSetParams(node, &got));
  fill = fillOf(others, 0x01020304, 2, 3);
  SAY(cudaGraphMemsetNodeSetParams(node, &fill));
  showFill(node);
  run();
  WORDS(others, {0, 1});
  fill = fillOf(others, 0x01020304, 1, 5);
  SAY(cudaGraphMemsetNodeSetParams(node, &fill));
  showFill(node);
  run();
  WORDS(others, {0, 1});
  fill = fillOf(others, 9, 4, 2, 3, 32);
  SAY(cudaGraphMemsetNodeSetParams(node, &fill));
  showFill(node);
  run();
  WORDS(others, {1, 2, 8, 9, 10, 16, 17, 18, 24});
  fill = fillOf(others, 9, 4, 9, 3, 32);
  SAY(cudaGraphMemsetNodeSetParams(node, &fill));
  fill = fillOf(others, 9, 4, 2, 3, 34);
  SAY(cudaGraphMemsetNodeSetParams(node, &fill));
  fill = fillOf(others, 9, 4, 2, 3, 0);
  SAY(cudaGraphMemsetNodeSetParams(node, &fill));
  fill = fillOf(others, 9, 8, 2);
  SAY(cudaGraphMemsetNodeSetParams(node, &fill));
  fill = fillOf(others, 9, 0, 2);
  SAY(cudaGraphMemsetNodeSetParams(node, &fill));
  fill = fillOf(others, 9, 4, 0);
  SAY(cudaGraphMemsetNodeSetParams(node, &fill));
  fill = fillOf(others, 9, 4, 2, 0, 32);
  SAY(cudaGraphMemsetNodeSetParams(node, &fill));
  fill = fillOf(nullptr, 9, 4, 2);
  SAY(cudaGraphMemsetNodeSetParams(node, &fill));
  fill = fillOf(reinterpret_cast<char*>(others) + 2, 9, 4, 2);
  SAY(cudaGraphMemsetNodeSetParams(node, &fill));
  SAY(cudaGraphAddMemsetNode(&second, graph, nullptr, 0, &fill));
  fill = fillOf(host, 9, 4, 2);
  SAY(cudaGraphMemsetNodeSetParams(node, &fill));
  fill = fillOf(pinned, 9, 4, 2);
  SAY(cudaGraphMemsetNodeSetParams(node, &fill));
  run();
  VALUE(pinned[1]);
  showFill(node);
}

SECTION(fillsOfExecutables) {
  setUp();
  cudaMemsetParams row = fillOf(others, 3, 4, 3), rows = fillOf(others + 32, 4, 4, 2, 2, 32);
  CHECK(cudaGraphAddMemsetNode(&node, graph, nullptr, 0, &row));
  CHECK(cudaGraphAddMemsetNode(&second, graph, nullptr, 0, &rows));
  SAY(cudaGraphInstantiate(&executable, graph, 0));
  launch();
  WORDS(others, {2, 41});
  row.value = 5;
  SAY(cudaGraphExecMemsetNodeSetParams(executable, node, &row));
  launch();
  WORDS(others, {2});
  row.dst = others + 4;
  SAY(cudaGraphExecMemsetNodeSetParams(executable, node, &row));
  launch();
  WORDS(others, {6});
  row.width = 6;
  SAY(cudaGraphExecMemsetNodeSetParams(executable, node, &row));
  launch();
  WORDS(others, {9});
  row = fillOf(others, 0x77, 1, 3);
  SAY(cudaGraphExecMemsetNodeSetParams(executable, node, &row));
  launch();
  WORDS(others, {0});
  SAY(cudaGraphExecMemsetNodeSetParams(executable, node, &rows));
  SAY(cudaGraphExecMemsetNodeSetParams(executable, second, &row));
  rows.value = 8;
  SAY(cudaGraphExecMemsetNodeSetParams(executable, second, &rows));
  launch();
  WORDS(others, {41});
  row = fillOf(others, 1, 3, 3);
  SAY(cudaGraphExecMemsetNodeSetParams(executable, node, &row));
  row = fillOf(others, 1, 4, 0);
  SAY(cudaGraphExecMemsetNodeSetParams(executable, node, &row));
  row = fillOf(nullptr, 1, 4, 1);
  SAY(cudaGraphExecMemsetNodeSetParams(executable, node, &row));
  row = fillOf(pinned, 1, 4, 1);
  SAY(cudaGraphExecMemsetNodeSetParams(executable, node, &row));
  launch();
  cudaGraphNode_t empty;
  CHECK(cudaGraphAddEmptyNode(&empty, graph, nullptr, 0));
  row = fillOf(others, 1, 4, 1);
  SAY(cudaGraphExecMemsetNodeSetParams(executable, empty, &row));
  SAY(cudaGraphMemsetNodeSetParams(empty, &row));
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

// An event that has yet to come, and one that was never recorded.
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
  SAY(cudaGraphKernelNodeSetParams(inner, &parameters));  // the node has a copy
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

// Every question of every type of node.
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

// Other nodes than those that were instantiated: later ones, of another graph, and those of a clone.
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
  // What is in an executable graph is its own.
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

// Nothing where something must be: one in a section, as the driver may look there.
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

// A kernel that has parameters, and is given none.
SECTION(kernelWithoutArguments) {
  setUp();
  cudaKernelNodeParams parameters = kernelNode(add, nullptr);
  SAY(cudaGraphAddKernelNode(&node, graph, nullptr, 0, &parameters));
}

// The graph of a child's node is the node's.
SECTION(ownedGraph) {
  setUp();
  cudaGraph_t child = nullptr, got = nullptr;
  CHECK(cudaGraphCreate(&child, 0));
  CHECK(cudaGraphAddEmptyNode(&second, child, nullptr, 0));
  CHECK(cudaGraphAddChildGraphNode(&node, graph, nullptr, 0, child));
  CHECK(cudaGraphChildGraphNodeGetGraph(node, &got));
  SAY(cudaGraphDestroy(got));
}
