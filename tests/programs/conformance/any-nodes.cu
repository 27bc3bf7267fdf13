// Graph nodes' parameters in the structure for all types (cudaGraphNodeParams), and those of nodes that a capture makes.
#include <functional>

#include "graph-nodes.h"

__device__ int variable[4] = {10, 20, 30, 40};

namespace {

cudaGraphNodeParams ofType(cudaGraphNodeType type) {
  cudaGraphNodeParams parameters{};
  parameters.type = type;
  return parameters;
}
cudaGraphNodeParams anyKernel(void (*function)(int*, int), void** arguments) {
  cudaGraphNodeParams parameters = ofType(cudaGraphNodeTypeKernel);
  parameters.kernel.func = reinterpret_cast<void*>(function);
  parameters.kernel.gridDim = dim3(1);
  parameters.kernel.blockDim = dim3(1);
  parameters.kernel.kernelParams = arguments;
  return parameters;
}
cudaGraphNodeParams anyCopy(void* to, void* from, cudaExtent extent, cudaMemcpyKind kind = cudaMemcpyDeviceToDevice) {
  cudaGraphNodeParams parameters = ofType(cudaGraphNodeTypeMemcpy);
  parameters.memcpy.copyParams = copyOf(to, from, 32, extent, kind);
  return parameters;
}
cudaGraphNodeParams anyFill(void* place, unsigned value, size_t width, size_t height = 1) {
  cudaGraphNodeParams parameters = ofType(cudaGraphNodeTypeMemset);
  parameters.memset = {place, 32, value, 4, width, height};
  return parameters;
}
cudaGraphNodeParams anyHost(cudaHostFn_t function, void* data) {
  cudaGraphNodeParams parameters = ofType(cudaGraphNodeTypeHost);
  parameters.host = {function, data};
  return parameters;
}
cudaGraphNodeParams anyRecord(cudaEvent_t event) {
  cudaGraphNodeParams parameters = ofType(cudaGraphNodeTypeEventRecord);
  parameters.eventRecord.event = event;
  return parameters;
}
cudaGraphNodeParams anyWait(cudaEvent_t event) {
  cudaGraphNodeParams parameters = ofType(cudaGraphNodeTypeWaitEvent);
  parameters.eventWait.event = event;
  return parameters;
}
cudaGraphNodeParams anyChild(cudaGraph_t child) {
  cudaGraphNodeParams parameters = ofType(cudaGraphNodeTypeGraph);
  parameters.graph.graph = child;
  return parameters;
}

// Changes the node, and its copy in an executable graph.
void change(cudaGraphNodeParams made, cudaGraphNodeParams changed, const std::function<void()>& show) {
  if (SAY(cudaGraphAddNode(&node, graph, nullptr, nullptr, 0, &made)) != cudaSuccess) return;
  SAY(cudaGraphInstantiate(&executable, graph, 0));
  launch();
  show();
  SAY(cudaGraphExecNodeSetParams(executable, node, &changed));
  launch();
  show();
  SAY(cudaGraphNodeSetParams(node, &changed));
  run();
  show();
  CHECK(cudaGraphExecDestroy(executable));
}

}  // namespace

SECTION(anyKernels) {
  setUp();
  int value = 7;
  void* arguments[] = {&words, &value};
  change(anyKernel(add, arguments), anyKernel(multiply, arguments), [] { VALUE(wordAt(words)); });
  cudaGraphNodeParams wrong = anyKernel(nullptr, arguments);
  SAY(cudaGraphNodeSetParams(node, &wrong));
  SAY(cudaGraphAddNode(&second, graph, nullptr, nullptr, 0, &wrong));
  wrong = anyKernel(add, arguments);
  wrong.kernel.blockDim.x = 4096;
  SAY(cudaGraphNodeSetParams(node, &wrong));
  SAY(cudaGraphAddNode(&second, graph, nullptr, nullptr, 0, &wrong));
}

SECTION(anyCopies) {
  setUp();
  change(anyCopy(others, words + 3, make_cudaExtent(8, 1, 1)), anyCopy(others, words + 6, make_cudaExtent(4, 1, 1)), [] {
    WORDS(others, {0, 1});
  });
  cudaGraphNodeParams wrong = anyCopy(others, words, make_cudaExtent(8, 1, 1));
  wrong.memcpy.flags = 1;
  SAY(cudaGraphNodeSetParams(node, &wrong));
  SAY(cudaGraphAddNode(&second, graph, nullptr, nullptr, 0, &wrong));
  wrong = anyCopy(others, words, make_cudaExtent(8, 0, 1));
  SAY(cudaGraphNodeSetParams(node, &wrong));
  wrong = anyCopy(others, words, make_cudaExtent(64, 2, 1));
  SAY(cudaGraphNodeSetParams(node, &wrong));
}

SECTION(anyBoxes) {
  setUp();
  change(anyCopy(others, words + 3, make_cudaExtent(8, 2, 1)), anyCopy(others, words + 6, make_cudaExtent(4, 2, 1)), [] {
    WORDS(others, {0, 1, 8});
  });
}

SECTION(anyFills) {
  setUp();
  change(anyFill(others, 3, 2), anyFill(others + 1, 4, 1), [] { WORDS(others, {0, 1}); });
  cudaGraphNodeParams wrong = anyFill(others, 3, 0);
  SAY(cudaGraphNodeSetParams(node, &wrong));
  wrong = anyFill(nullptr, 3, 2);
  SAY(cudaGraphNodeSetParams(node, &wrong));
  SAY(cudaGraphAddNode(&second, graph, nullptr, nullptr, 0, &wrong));
}

SECTION(anyRectangles) {
  setUp();
  change(anyFill(others, 3, 2, 2), anyFill(others + 1, 4, 1, 2), [] { WORDS(others, {0, 1, 9}); });
}

SECTION(anyHosts) {
  setUp();
  int counter = 0;
  change(anyHost(count, &counter), anyHost(countTen, &counter), [&] { VALUE(counter); });
  cudaGraphNodeParams wrong = anyHost(nullptr, &counter);
  SAY(cudaGraphNodeSetParams(node, &wrong));
  SAY(cudaGraphAddNode(&second, graph, nullptr, nullptr, 0, &wrong));
}

SECTION(anyEvents) {
  setUp();
  cudaEvent_t start, first, later, got = nullptr;
  CHECK(cudaEventCreate(&start));
  CHECK(cudaEventCreate(&first));
  CHECK(cudaEventCreate(&later));
  CHECK(cudaEventRecord(start, stream));
  CHECK(cudaStreamSynchronize(stream));
  change(anyRecord(first), anyRecord(later), [&] {
    float passed = 0;
    SAY(cudaEventElapsedTime(&passed, start, first));
    SAY(cudaEventElapsedTime(&passed, start, later));
  });
  change(anyWait(first), anyWait(later), [&] {
    SAY(cudaGraphEventWaitNodeGetEvent(node, &got));
    VALUE(got == later);
  });
  cudaGraphNodeParams wrong = anyRecord(nullptr);
  SAY(cudaGraphNodeSetParams(node, &wrong));
  SAY(cudaGraphAddNode(&second, graph, nullptr, nullptr, 0, &wrong));
  wrong = anyWait(nullptr);
  SAY(cudaGraphNodeSetParams(node, &wrong));
  SAY(cudaGraphAddNode(&second, graph, nullptr, nullptr, 0, &wrong));
}

SECTION(anyChildren) {
  setUp();
  int value = 2;
  void* arguments[] = {&words, &value};
  cudaKernelNodeParams parameters = kernelNode(add, arguments);
  cudaGraph_t child = nullptr, other = nullptr, got = nullptr;
  cudaGraphNode_t inner;
  CHECK(cudaGraphCreate(&child, 0));
  CHECK(cudaGraphCreate(&other, 0));
  CHECK(cudaGraphAddKernelNode(&inner, child, nullptr, 0, &parameters));
  value = 30;
  CHECK(cudaGraphAddKernelNode(&inner, other, nullptr, 0, &parameters));
  change(anyChild(child), anyChild(other), [] { VALUE(wordAt(words)); });
  cudaGraphNodeParams read = anyChild(child);
  SAY(cudaGraphAddNode(&second, graph, nullptr, nullptr, 0, &read));
  SAY(cudaGraphChildGraphNodeGetGraph(second, &got));
  VALUE(read.graph.graph == child);
  VALUE(read.graph.graph == got);
  cudaGraphNodeParams wrong = anyChild(nullptr);
  SAY(cudaGraphNodeSetParams(node, &wrong));
  SAY(cudaGraphAddNode(&second, graph, nullptr, nullptr, 0, &wrong));
}

SECTION(anyOthers) {
  setUp();
  cudaGraphNodeParams empty = ofType(cudaGraphNodeTypeEmpty), memory = ofType(cudaGraphNodeTypeMemAlloc),
                      freed = ofType(cudaGraphNodeTypeMemFree);
  SAY(cudaGraphAddNode(&node, graph, nullptr, nullptr, 0, &empty));
  SAY(cudaGraphNodeSetParams(node, &empty));
  SAY(cudaGraphInstantiate(&executable, graph, 0));
  SAY(cudaGraphExecNodeSetParams(executable, node, &empty));
  memory.alloc.poolProps.allocType = cudaMemAllocationTypePinned;
  memory.alloc.poolProps.location.type = cudaMemLocationTypeDevice;
  memory.alloc.bytesize = 64;
  SAY(cudaGraphAddNode(&second, graph, nullptr, nullptr, 0, &memory));
  VALUE(memory.alloc.dptr != nullptr);
  freed.free.dptr = memory.alloc.dptr;
  cudaGraphNode_t third;
  SAY(cudaGraphAddNode(&third, graph, &second, nullptr, 1, &freed));
  SAY(cudaGraphNodeSetParams(second, &memory));
  SAY(cudaGraphNodeSetParams(third, &freed));
  cudaGraphExec_t withMemory = nullptr;
  SAY(cudaGraphInstantiate(&withMemory, graph, 0));
  SAY(cudaGraphExecNodeSetParams(withMemory, second, &memory));
  SAY(cudaGraphExecNodeSetParams(withMemory, third, &freed));
  SAY(cudaGraphLaunch(withMemory, stream));
  SAY(cudaStreamSynchronize(stream));
  cudaGraphNodeParams wrong = ofType(static_cast<cudaGraphNodeType>(99));
  SAY(cudaGraphAddNode(&third, graph, nullptr, nullptr, 0, &wrong));
  SAY(cudaGraphNodeSetParams(node, &wrong));
  SAY(cudaGraphExecNodeSetParams(executable, node, &wrong));
}

SECTION(anyOfWrongTypes) {
  setUp();
  int value = 1, counter = 0;
  void* arguments[] = {&words, &value};
  cudaEvent_t event;
  cudaGraph_t child;
  CHECK(cudaEventCreate(&event));
  CHECK(cudaGraphCreate(&child, 0));
  cudaGraphNodeParams all[] = {anyKernel(add, arguments), anyCopy(others, words, make_cudaExtent(8, 1, 1)),
                               anyFill(others, 1, 1),     anyHost(count, &counter),
                               anyRecord(event),          anyWait(event),
                               anyChild(child),           ofType(cudaGraphNodeTypeEmpty)};
  constexpr size_t many = sizeof all / sizeof *all;
  cudaGraphNode_t nodes[many];
  for (size_t i = 0; i < many; ++i) CHECK(cudaGraphAddNode(&nodes[i], graph, nullptr, nullptr, 0, &all[i]));
  CHECK(cudaGraphInstantiate(&executable, graph, 0));
  for (size_t i = 0; i < many; ++i) {
    VALUE(all[i].type);
    for (size_t other = 0; other < many; ++other) {
      cudaGraphNodeParams given = all[other];
      if (i != other)
        sayNumbers("type; node and executable set to it", {given.type, cudaGraphNodeSetParams(nodes[i], &given),
                                                           cudaGraphExecNodeSetParams(executable, nodes[i], &given)});
    }
  }
  launch();
}

SECTION(reserved) {
  setUp();
  int counter = 0;
  cudaGraphNodeParams right = anyHost(count, &counter), wrong = right;
  CHECK(cudaGraphAddNode(&node, graph, nullptr, nullptr, 0, &right));
  CHECK(cudaGraphInstantiate(&executable, graph, 0));
  for (int which = 0; which < 3; ++which) {
    wrong = right;
    if (which == 0) wrong.reserved0[0] = 1;
    if (which == 1) wrong.reserved2 = 1;
    if (which == 2) wrong.reserved1[28] = 1;
    VALUE(which);
    SAY(cudaGraphAddNode(&second, graph, nullptr, nullptr, 0, &wrong));
    SAY(cudaGraphNodeSetParams(node, &wrong));
    SAY(cudaGraphExecNodeSetParams(executable, node, &wrong));
  }
}

// Nodes that captured calls become.
namespace {

cudaGraphNode_t captured() {
  cudaStreamCaptureStatus status;
  const cudaGraphNode_t* last = nullptr;
  size_t many = 0;
  CHECK(cudaStreamGetCaptureInfo(stream, &status, nullptr, nullptr, &last, nullptr, &many));
  VALUE(many);
  cudaGraphNodeType type{};
  SAY(cudaGraphNodeGetType(last[0], &type));
  VALUE(type);
  return last[0];
}

}  // namespace

SECTION(ofCaptures) {
  setUp();
  cudaEvent_t event, recorded = nullptr;
  CHECK(cudaEventCreate(&event));
  int counter = 0;
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  SAY(cudaMemcpyAsync(others, words + 2, 12, cudaMemcpyDeviceToDevice, stream));
  showCopy(captured());
  SAY(cudaMemcpyAsync(others + 3, pinned, 8, cudaMemcpyHostToDevice, stream));
  showCopy(captured());
  SAY(cudaMemcpyAsync(pinned, others, 8, cudaMemcpyDefault, stream));
  showCopy(captured());
  SAY(cudaMemcpy2DAsync(others + 8, 32, words, 16, 8, 2, cudaMemcpyDeviceToDevice, stream));
  showCopy(captured());
  SAY(cudaMemcpy2DAsync(others + 24, 32, words, 16, 8, 1, cudaMemcpyDeviceToDevice, stream));
  showCopy(captured());
  cudaMemcpy3DParms box = copyOf(others + 32, words, 16, make_cudaExtent(8, 2, 2), cudaMemcpyDeviceToDevice);
  SAY(cudaMemcpy3DAsync(&box, stream));
  showCopy(captured());
  SAY(cudaMemcpyToSymbolAsync(variable, words, 8, 4, cudaMemcpyDeviceToDevice, stream));
  showCopy(captured());
  SAY(cudaMemcpyFromSymbolAsync(others + 60, variable, 8, 4, cudaMemcpyDeviceToDevice, stream));
  showCopy(captured());
  SAY(cudaMemsetAsync(others + 50, 0x11, 7, stream));
  showFill(captured());
  SAY(cudaMemsetAsync(others + 52, 0x11, 8, stream));
  showFill(captured());
  SAY(cudaMemset2DAsync(others + 54, 8, 0x22, 4, 2, stream));
  showFill(captured());
  SAY(cudaMemset2DAsync(others + 58, 8, 0x22, 4, 1, stream));
  showFill(captured());
  SAY(cudaMemset3DAsync(make_cudaPitchedPtr(others + 40, 8, 8, 2), 0x33, make_cudaExtent(4, 2, 2), stream));
  showFill(captured());
  SAY(cudaMemset3DAsync(make_cudaPitchedPtr(others + 40, 8, 8, 2), 0x33, make_cudaExtent(4, 1, 2), stream));
  showFill(captured());
  SAY(cudaLaunchHostFunc(stream, count, &counter));
  cudaHostNodeParams function{};
  SAY(cudaGraphHostNodeGetParams(captured(), &function));
  VALUE(function.fn == count);
  VALUE(function.userData == &counter);
  SAY(cudaEventRecordWithFlags(event, stream, cudaEventRecordExternal));
  SAY(cudaGraphEventRecordNodeGetEvent(captured(), &recorded));
  VALUE(recorded == event);
  SAY(cudaStreamWaitEvent(stream, event, cudaEventWaitExternal));
  SAY(cudaGraphEventWaitNodeGetEvent(captured(), &recorded));
  VALUE(recorded == event);
  add<<<1, 1, 0, stream>>>(words, 5);
  cudaKernelNodeParams kernel{};
  SAY(cudaGraphKernelNodeGetParams(captured(), &kernel));
  VALUE(kernel.func == reinterpret_cast<void*>(add));
  VALUE(*static_cast<int*>(kernel.kernelParams[1]));
  SAY(cudaMemcpyAsync(others, words, 0, cudaMemcpyDeviceToDevice, stream));
  captured();
  SAY(cudaMemsetAsync(others, 0, 0, stream));
  captured();
  SAY(cudaStreamEndCapture(stream, &graph));
  run();
  WORDS(others, {0, 3, 8, 16, 24, 32, 36, 40, 42, 44, 50, 51, 52, 54, 56, 58, 60});
  VALUE(counter);
}
