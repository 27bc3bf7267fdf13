// CUDA 12.3 and newer: conditional graph nodes, batches for managed memory, events of contexts; and pointer attributes.
#include "conformance.h"

static __global__ void setTo(cudaGraphConditionalHandle handle, unsigned value) { cudaGraphSetConditional(handle, value); }

namespace {

cudaGraph_t graph, body;
cudaGraphNode_t node;
cudaGraphConditionalHandle handle;

void setUp() {
  CHECK(cudaFree(nullptr));
  CHECK(cudaGraphCreate(&graph, 0));
}

cudaGraphNodeParams conditional(cudaGraphConditionalHandle of, cudaGraphConditionalNodeType type, unsigned size) {
  cudaGraphNodeParams params{};
  params.type = cudaGraphNodeTypeConditional;
  params.conditional.handle = of;
  params.conditional.type = type;
  params.conditional.size = size;
  return params;
}

// The first body of a conditional node with a new handle.
cudaGraph_t bodyOf(cudaGraph_t in) {
  CHECK(cudaGraphConditionalHandleCreate(&handle, in, 0, 0));
  cudaGraphNodeParams params = conditional(handle, cudaGraphCondTypeIf, 1);
  CHECK(cudaGraphAddNode(&node, in, nullptr, nullptr, 0, &params));
  return params.conditional.phGraph_out[0];
}

}  // namespace

SECTION(handles) {
  setUp();
  SAY(cudaGraphConditionalHandleCreate(nullptr, graph, 0, 0));
  SAY(cudaGraphConditionalHandleCreate(&handle, nullptr, 0, 0));
  for (unsigned flags : {0, 1, 2, 3, 4}) {
    handle = 99;
    SAY(cudaGraphConditionalHandleCreate(&handle, graph, 5, flags));
    VALUE(handle);
  }
  body = bodyOf(graph);
  VALUE(handle);
  SAY(cudaGraphConditionalHandleCreate(&handle, body, 0, 0));
  VALUE(handle);
  cudaGraph_t other;
  CHECK(cudaGraphCreate(&other, 0));
  SAY(cudaGraphConditionalHandleCreate(&handle, other, 0, 0));
  VALUE(handle);
}

SECTION(nodes) {
  setUp();
  for (int type : {0, 1, 2, 3, -1})
    for (unsigned size : {0u, 1u, 2u, 3u}) {
      CHECK(cudaGraphConditionalHandleCreate(&handle, graph, 0, 0));
      cudaGraphNodeParams params = conditional(handle, static_cast<cudaGraphConditionalNodeType>(type), size);
      VALUE(type);
      VALUE(size);
      SAY(cudaGraphAddNode(&node, graph, nullptr, nullptr, 0, &params));
      SAY(cudaGraphAddNode(&node, graph, nullptr, nullptr, 0, &params));
    }
  cudaGraphNodeParams params = conditional(0, cudaGraphCondTypeIf, 1);
  SAY(cudaGraphAddNode(&node, graph, nullptr, nullptr, 0, &params));
  params = conditional(999, cudaGraphCondTypeIf, 1);
  SAY(cudaGraphAddNode(&node, graph, nullptr, nullptr, 0, &params));
}

SECTION(bodies) {
  setUp();
  body = bodyOf(graph);
  cudaGraph_t child, copy;
  cudaEvent_t event;
  char* memory;
  cudaHostNodeParams host{[](void*) {}, nullptr};
  CHECK(cudaEventCreate(&event));
  CHECK(cudaMalloc(&memory, 64));
  static char pageable[64];
  CHECK(cudaGraphCreate(&child, 0));
  SAY(cudaGraphAddEmptyNode(&node, body, nullptr, 0));
  SAY(cudaGraphAddHostNode(&node, body, nullptr, 0, &host));
  SAY(cudaGraphAddEventRecordNode(&node, body, nullptr, 0, event));
  SAY(cudaGraphAddEventWaitNode(&node, body, nullptr, 0, event));
  SAY(cudaGraphAddChildGraphNode(&node, body, nullptr, 0, child));
  SAY(cudaGraphAddMemcpyNode1D(&node, body, nullptr, 0, memory, pageable, 64, cudaMemcpyHostToDevice));
  CHECK(cudaGraphAddHostNode(&node, child, nullptr, 0, &host));
  SAY(cudaGraphAddChildGraphNode(&node, body, nullptr, 0, child));
  SAY(cudaGraphDestroy(body));
  SAY(cudaGraphClone(&copy, body));
  SAY(cudaGraphClone(&copy, graph));
  SAY(cudaGraphAddChildGraphNode(&node, child, nullptr, 0, graph));
  SAY(cudaGraphAddChildGraphNode(&node, child, nullptr, 0, body));
  cudaStream_t stream;
  CHECK(cudaStreamCreate(&stream));
  SAY(cudaStreamBeginCaptureToGraph(stream, body, nullptr, nullptr, 0, cudaStreamCaptureModeGlobal));
  SAY(cudaLaunchHostFunc(stream, [](void*) {}, nullptr));
  cudaGraph_t captured = nullptr;
  SAY(cudaStreamEndCapture(stream, &captured));
  VALUE(captured == body);
}

SECTION(instantiation) {
  setUp();
  cudaGraphExec_t executable, second;
  CHECK(cudaGraphConditionalHandleCreate(&handle, graph, 0, 0));
  SAY(cudaGraphInstantiate(&executable, graph));  // no node uses the handle
  cudaGraph_t other;
  CHECK(cudaGraphCreate(&other, 0));
  body = bodyOf(other);
  SAY(cudaGraphInstantiate(&executable, body));
  SAY(cudaGraphInstantiate(&executable, other));
  SAY(cudaGraphInstantiate(&second, other));
  cudaGraphExecUpdateResultInfo info{};
  SAY(cudaGraphExecUpdate(executable, other, &info));
  VALUE(info.result);
  SAY(cudaGraphLaunch(executable, nullptr));
  SAY(cudaStreamSynchronize(nullptr));
  cudaGraphNodeType type;
  SAY(cudaGraphNodeGetType(node, &type));
  VALUE(type);
  SAY(cudaGraphDestroyNode(node));
  SAY(cudaGraphAddEmptyNode(&node, body, nullptr, 0));  // the body was destroyed with its node
}

SECTION(outside) {
  setUp();
  setTo<<<1, 1>>>(1, 1);  // outside of a graph
  SAY(cudaGetLastError());
  SAY(cudaDeviceSynchronize());
}

SECTION(batches) {
  setUp();
  void* memory = nullptr;
  size_t bytes = 4096, first = 0, later = 1, count = 1;
  cudaMemLocation device{cudaMemLocationTypeDevice, 0}, nowhere{cudaMemLocationTypeDevice, 99};
  cudaStream_t stream;
  CHECK(cudaStreamCreate(&stream));
  CHECK(cudaMallocManaged(&memory, bytes));
  SAY(cudaMemPrefetchBatchAsync(&memory, &bytes, count, &device, &first, 1, 0, stream));
  SAY(cudaMemPrefetchBatchAsync(&memory, &bytes, count, &device, &later, 1, 0, stream));
  SAY(cudaMemPrefetchBatchAsync(&memory, &bytes, count, &nowhere, &first, 1, 0, stream));
  SAY(cudaMemPrefetchBatchAsync(&memory, &bytes, count, &device, &first, 1, 1, stream));
  SAY(cudaMemPrefetchBatchAsync(&memory, &bytes, count, &device, &first, 1, 0, cudaStreamLegacy));
  SAY(cudaMemPrefetchBatchAsync(&memory, &bytes, 0, &device, &first, 1, 0, stream));
  SAY(cudaMemDiscardBatchAsync(&memory, &bytes, count, 0, stream));
  SAY(cudaMemDiscardBatchAsync(&memory, &bytes, count, 1, stream));
  SAY(cudaMemDiscardBatchAsync(nullptr, &bytes, count, 0, stream));
  SAY(cudaMemDiscardAndPrefetchBatchAsync(&memory, &bytes, count, &device, &first, 1, 0, stream));
  SAY(cudaStreamSynchronize(stream));
}

SECTION(pointers) {
  setUp();
  char *memory = nullptr, *host = nullptr, *pooled = nullptr;
  unsigned value = 1, wrong = 2;
  CHECK(cudaMalloc(&memory, 100));
  CHECK(cudaMallocHost(&host, 100));
  CHECK(cudaMallocAsync(&pooled, 100, nullptr));
  auto address = [](void* pointer) { return reinterpret_cast<CUdeviceptr>(pointer); };
  SAYCU(cuPointerSetAttribute, &value, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, address(memory));
  SAYCU(cuPointerSetAttribute, &value, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, address(memory + 50));
  SAYCU(cuPointerSetAttribute, &wrong, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, address(memory));
  SAYCU(cuPointerSetAttribute, &value, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, address(host));
  SAYCU(cuPointerSetAttribute, &value, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, address(pooled));
  SAYCU(cuPointerSetAttribute, &value, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, address(&value));
  SAYCU(cuPointerSetAttribute, nullptr, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, address(memory));
  SAYCU(cuPointerSetAttribute, &value, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address(memory));
  size_t size = 0;
  SAYCU(cuPointerGetAttribute, &size, CU_POINTER_ATTRIBUTE_RANGE_SIZE, address(pooled));
  VALUE(size);
}

SECTION(contextEvents) {
  setUp();
  CUcontext context = nullptr, other = nullptr;
  CUevent event = nullptr, ofOther = nullptr;
  SAYCU(cuCtxGetCurrent, &context);
  SAYCU(cuEventCreate, &event, 0);
  SAYCU(cuCtxCreate, &other, nullptr, 0, 0);
  SAYCU(cuEventCreate, &ofOther, 0);
  SAYCU(cuCtxRecordEvent, context, ofOther);
  SAYCU(cuCtxRecordEvent, other, ofOther);
  SAYCU(cuCtxWaitEvent, context, ofOther);
  SAYCU(cuCtxRecordEvent, nullptr, ofOther);
  SAYCU(cuCtxWaitEvent, nullptr, ofOther);
  SAYCU(cuCtxSetCurrent, context);
  cudaStream_t stream;
  CHECK(cudaStreamCreate(&stream));
  SAY(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  SAYCU(cuCtxRecordEvent, context, event);
  cudaGraph_t captured;
  SAY(cudaStreamEndCapture(stream, &captured));
  SAY(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  SAYCU(cuCtxWaitEvent, context, ofOther);
  SAY(cudaStreamEndCapture(stream, &captured));
}

static void ofMemory(cudaAsyncNotificationInfo_t*, void*, cudaAsyncCallbackHandle_t) {}

SECTION(notifications) {
  cudaAsyncCallbackHandle_t first = nullptr, second = nullptr;
  SAY(cudaDeviceRegisterAsyncNotification(0, ofMemory, nullptr, &first));
  SAY(cudaDeviceRegisterAsyncNotification(0, ofMemory, nullptr, &second));
  VALUE(first == second);
  SAY(cudaDeviceRegisterAsyncNotification(0, nullptr, nullptr, &second));
  SAY(cudaDeviceRegisterAsyncNotification(99, ofMemory, nullptr, &second));
  SAY(cudaDeviceRegisterAsyncNotification(-1, ofMemory, nullptr, &second));
  SAY(cudaDeviceUnregisterAsyncNotification(99, first));
  SAY(cudaDeviceUnregisterAsyncNotification(0, first));
  SAY(cudaDeviceUnregisterAsyncNotification(0, second));
}

SECTION(notificationsOfNone) {
  DRIVER(cuInit)(0);
  CUasyncCallbackHandle handle = nullptr;
  auto* function = reinterpret_cast<CUasyncCallback>(ofMemory);
  SAYCU(cuDeviceRegisterAsyncNotification, 0, function, nullptr, &handle);
  SAYCU(cuDeviceUnregisterAsyncNotification, 0, handle);
  SAYCU(cuDeviceUnregisterAsyncNotification, 0, nullptr);
}

SECTION(decompression) {
  setUp();
  int algorithms = -1, longest = -1;
  SAYCU(cuDeviceGetAttribute, &algorithms, CU_DEVICE_ATTRIBUTE_MEM_DECOMPRESS_ALGORITHM_MASK, 0);
  SAYCU(cuDeviceGetAttribute, &longest, CU_DEVICE_ATTRIBUTE_MEM_DECOMPRESS_MAXIMUM_LENGTH, 0);
  VALUE(algorithms);
  VALUE(longest);
  char* memory = nullptr;
  cudaStream_t stream;
  CHECK(cudaMalloc(&memory, 1024));
  CHECK(cudaStreamCreate(&stream));
  CUmemDecompressParams one{};
  one.srcNumBytes = 100;
  one.dstNumBytes = 200;
  one.dstActBytes = reinterpret_cast<cuuint32_t*>(memory + 512);
  one.src = memory;
  one.dst = memory + 256;
  size_t wrong = 77;
  for (int algorithm : {0, 1, 2, 4, 8}) {
    one.algo = static_cast<CUmemDecompressAlgorithm>(algorithm);
    SAYCU(cuMemBatchDecompressAsync, &one, 1, 0, &wrong, stream);
    VALUE(wrong);
  }
  one.algo = CU_MEM_DECOMPRESS_ALGORITHM_DEFLATE;
  SAYCU(cuMemBatchDecompressAsync, &one, 1, 0, nullptr, stream);
  SAYCU(cuMemBatchDecompressAsync, &one, 1, 1, &wrong, stream);
  SAYCU(cuMemBatchDecompressAsync, &one, 1, 0, &wrong, nullptr);
  SAYCU(cuMemBatchDecompressAsync, &one, 0, 0, &wrong, stream);
  SAYCU(cuMemBatchDecompressAsync, nullptr, 1, 0, &wrong, stream);
  SAYCU(cuMemBatchDecompressAsync, nullptr, 0, 0, &wrong, stream);
  VALUE(wrong);
  SAY(cudaStreamSynchronize(stream));
}
