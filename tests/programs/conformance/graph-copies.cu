// Parameters of copy and fill nodes by the runtime: rows, boxes, arrays and symbols; reading a node's parameters, changing them in the
// graph and in an executable graph, and the result of a launch.
#include "graph-nodes.h"

__device__ int variable[4] = {10, 20, 30, 40};
__constant__ int constant[4] = {1, 2, 3, 4};
__managed__ int managed[4] = {5, 6, 7, 8};

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
