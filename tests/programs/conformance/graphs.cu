// Graphs: nodes and edges, failing instantiations and updates, memory and user objects.
#include "../memory-node.h"
#include "conformance.h"

__global__ void add(int* value) { *value += 1; }

static int* values;
static cudaStream_t stream;
static cudaGraph_t graph;
static cudaGraphNode_t one, two, three;
static cudaGraphExec_t executable;

static void setUp() {
  CHECK(cudaMalloc(&values, 64));
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CHECK(cudaGraphCreate(&graph, 0));
}
static cudaKernelNodeParams adding() {
  static void* arguments[] = {&values};
  cudaKernelNodeParams parameters{};
  parameters.func = reinterpret_cast<void*>(add);
  parameters.gridDim = dim3(1);
  parameters.blockDim = dim3(1);
  parameters.kernelParams = arguments;
  return parameters;
}

SECTION(nodesAndEdges) {
  setUp();
  cudaGraph_t other;
  size_t count = 0;
  SAY(cudaGraphCreate(nullptr, 0));
  SAY(cudaGraphCreate(&other, 1));
  CHECK(cudaGraphCreate(&other, 0));
  SAY(cudaGraphAddEmptyNode(&one, graph, nullptr, 0));
  SAY(cudaGraphAddEmptyNode(nullptr, graph, nullptr, 0));
  SAY(cudaGraphAddEmptyNode(&two, graph, nullptr, 1));
  SAY(cudaGraphAddEmptyNode(&two, other, &one, 1));
  SAY(cudaGraphAddEmptyNode(&two, graph, &one, 1));
  cudaGraphNode_t twice[] = {one, one};
  SAY(cudaGraphAddEmptyNode(&three, graph, twice, 2));
  SAY(cudaGraphAddDependencies(graph, &one, &one, nullptr, 1));
  SAY(cudaGraphAddDependencies(graph, &one, &two, nullptr, 1));
  SAY(cudaGraphAddDependencies(graph, &two, &one, nullptr, 1));
  SAY(cudaGraphGetEdges(graph, nullptr, nullptr, nullptr, &count));
  VALUE(count);
  SAY(cudaGraphInstantiate(&executable, graph, 0));
  SAY(cudaGraphRemoveDependencies(graph, &two, &one, nullptr, 1));
  SAY(cudaGraphRemoveDependencies(graph, &two, &one, nullptr, 1));
  SAY(cudaGraphInstantiate(&executable, graph, 0));
  SAY(cudaGraphGetRootNodes(graph, nullptr, &count));
  VALUE(count);
  SAY(cudaGraphDestroyNode(one));
  SAY(cudaGraphGetNodes(graph, nullptr, &count));
  VALUE(count);
  SAY(cudaGraphAddChildGraphNode(&one, graph, nullptr, 0, other));
  SAY(cudaGraphInstantiate(&executable, nullptr, 0));
  SAY(cudaGraphInstantiate(nullptr, graph, 0));
  SAY(cudaGraphLaunch(nullptr, stream));
  SAY(cudaGraphDestroy(graph));
}

SECTION(parameters) {
  setUp();
  cudaKernelNodeParams kernel = adding(), got{};
  SAY(cudaGraphAddKernelNode(&one, graph, nullptr, 0, &kernel));
  SAY(cudaGraphKernelNodeGetParams(one, &got));
  VALUE(got.gridDim.x);
  kernel.gridDim.x = 0;
  SAY(cudaGraphAddKernelNode(&two, graph, nullptr, 0, &kernel));
  SAY(cudaGraphKernelNodeSetParams(one, &kernel));
  kernel.gridDim.x = 1;
  kernel.blockDim.x = 4096;
  SAY(cudaGraphAddKernelNode(&two, graph, nullptr, 0, &kernel));
  kernel.blockDim.x = 1;
  kernel.sharedMemBytes = 1 << 20;
  SAY(cudaGraphAddKernelNode(&two, graph, nullptr, 0, &kernel));
  kernel = adding();
  kernel.func = nullptr;
  SAY(cudaGraphAddKernelNode(&two, graph, nullptr, 0, &kernel));
  SAY(cudaGraphAddKernelNode(&two, graph, nullptr, 0, nullptr));
  cudaMemsetParams fill{};
  fill.dst = values;
  fill.elementSize = 3;
  fill.width = 4;
  fill.height = 1;
  SAY(cudaGraphAddMemsetNode(&two, graph, &one, 1, &fill));
  fill.elementSize = 4;
  SAY(cudaGraphAddMemsetNode(&two, graph, &one, 1, &fill));
  SAY(cudaGraphKernelNodeGetParams(two, &got));
  SAY(cudaGraphKernelNodeSetParams(two, &kernel));
  SAY(cudaGraphAddMemcpyNode1D(&three, graph, &two, 1, values, values + 4, 16, cudaMemcpyHostToHost));
  SAY(cudaGraphAddMemcpyNode1D(&three, graph, &two, 1, values, values + 4, 0, cudaMemcpyDeviceToDevice));
  cudaHostNodeParams host{};
  SAY(cudaGraphAddHostNode(&three, graph, &two, 1, &host));
  SAY(cudaGraphAddEventRecordNode(&three, graph, &two, 1, nullptr));
}

SECTION(instantiation) {
  setUp();
  cudaKernelNodeParams kernel = adding();
  CHECK(cudaGraphAddKernelNode(&one, graph, nullptr, 0, &kernel));
  for (unsigned long long flags : {0, 1, 2, 4, 8, 16, 32}) {
    VALUE(flags);
    cudaGraphInstantiateParams how{};
    how.flags = flags;
    unsigned long long kept = 99;
    executable = nullptr;
    if (SAY(cudaGraphInstantiateWithParams(&executable, graph, &how)) == cudaSuccess) SAY(cudaGraphExecGetFlags(executable, &kept));
    VALUE(how.result_out);
    VALUE(kept);
    SAY(cudaGraphInstantiateWithFlags(&executable, graph, flags));
    cudaGetLastError();
  }
}

SECTION(updates) {
  setUp();
  cudaKernelNodeParams kernel = adding();
  CHECK(cudaGraphAddKernelNode(&one, graph, nullptr, 0, &kernel));
  CHECK(cudaGraphAddMemcpyNode1D(&two, graph, &one, 1, values, values + 4, 16, cudaMemcpyDeviceToDevice));
  CHECK(cudaGraphInstantiate(&executable, graph, 0));
  cudaGraphExecUpdateResultInfo info{};
  cudaGraph_t other;
  SAY(cudaGraphExecUpdate(executable, graph, &info));
  VALUE(info.result);
  CHECK(cudaGraphCreate(&other, 0));
  SAY(cudaGraphExecUpdate(executable, other, &info));
  VALUE(info.result);
  CHECK(cudaGraphAddEmptyNode(&three, other, nullptr, 0));
  cudaGraphNode_t fourth;
  CHECK(cudaGraphAddMemcpyNode1D(&fourth, other, &three, 1, values, values + 4, 16, cudaMemcpyDeviceToDevice));
  SAY(cudaGraphExecUpdate(executable, other, &info));
  VALUE(info.result);
  CHECK(cudaGraphDestroy(other));
  CHECK(cudaGraphCreate(&other, 0));
  CHECK(cudaGraphAddKernelNode(&three, other, nullptr, 0, &kernel));
  CHECK(cudaGraphAddMemcpyNode1D(&fourth, other, nullptr, 0, values, values + 4, 16, cudaMemcpyDeviceToDevice));
  SAY(cudaGraphExecUpdate(executable, other, &info));
  VALUE(info.result);
  SAY(cudaGraphExecKernelNodeSetParams(executable, one, &kernel));
  SAY(cudaGraphExecKernelNodeSetParams(executable, two, &kernel));
  SAY(cudaGraphExecKernelNodeSetParams(executable, three, &kernel));
  SAY(cudaGraphExecMemcpyNodeSetParams1D(executable, two, values, values + 8, 16, cudaMemcpyDeviceToDevice));
  SAY(cudaGraphExecMemcpyNodeSetParams1D(executable, one, values, values + 8, 16, cudaMemcpyDeviceToDevice));
  unsigned enabled = 9;
  SAY(cudaGraphNodeGetEnabled(executable, one, &enabled));
  VALUE(enabled);
  SAY(cudaGraphNodeSetEnabled(executable, one, 0));
  SAY(cudaGraphNodeGetEnabled(executable, one, &enabled));
  VALUE(enabled);
  SAY(cudaGraphLaunch(executable, stream));
  SAY(cudaStreamSynchronize(stream));
}

SECTION(memoryNodes) {
  setUp();
  auto amount = [](cudaGraphMemAttributeType which) {
    unsigned long long bytes = 0;
    CHECK(cudaDeviceGetGraphMemAttribute(0, which, &bytes));
    return bytes;
  };
  cudaMemAllocNodeParams parameters{};
  SAY(cudaGraphAddMemAllocNode(&one, graph, nullptr, 0, &parameters));
  parameters = memoryNode(1 << 20);
  SAY(cudaGraphAddMemAllocNode(&one, graph, nullptr, 0, &parameters));
  VALUE(parameters.dptr != nullptr);
  SAY(cudaGraphAddMemFreeNode(&two, graph, &one, 1, parameters.dptr));
  SAY(cudaGraphAddMemFreeNode(&three, graph, &one, 1, parameters.dptr));
  SAY(cudaGraphAddMemFreeNode(&three, graph, &one, 1, values));
  cudaGraph_t clone;
  SAY(cudaGraphClone(&clone, graph));
  SAY(cudaGraphDestroyNode(one));
  SAY(cudaGraphInstantiate(&executable, graph, 0));
  cudaGraphExec_t second;
  SAY(cudaGraphInstantiate(&second, graph, 0));
  VALUE(amount(cudaGraphMemAttrUsedMemCurrent));
  SAY(cudaGraphLaunch(executable, stream));
  SAY(cudaGraphLaunch(executable, stream));
  SAY(cudaStreamSynchronize(stream));
  VALUE(amount(cudaGraphMemAttrUsedMemHigh) >= 1 << 20);
  VALUE(amount(cudaGraphMemAttrReservedMemCurrent) >= 1 << 20);
  SAY(cudaGraphExecDestroy(executable));
  SAY(cudaDeviceGraphMemTrim(0));
  VALUE(amount(cudaGraphMemAttrReservedMemCurrent) >> 20);
  unsigned long long zero = 0, more = 5;
  SAY(cudaDeviceSetGraphMemAttribute(0, cudaGraphMemAttrUsedMemHigh, &zero));
  SAY(cudaDeviceSetGraphMemAttribute(0, cudaGraphMemAttrUsedMemHigh, &more));
  SAY(cudaDeviceSetGraphMemAttribute(0, cudaGraphMemAttrUsedMemCurrent, &zero));
}

SECTION(memoryThatStays) {
  setUp();
  auto used = [] {
    unsigned long long bytes = 0;
    CHECK(cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrUsedMemCurrent, &bytes));
    return bytes;
  };
  cudaMemAllocNodeParams parameters = memoryNode(1 << 20);
  CHECK(cudaGraphAddMemAllocNode(&one, graph, nullptr, 0, &parameters));
  SAY(cudaGraphInstantiate(&executable, graph, 0));
  SAY(cudaGraphLaunch(executable, stream));
  SAY(cudaGraphLaunch(executable, stream));
  SAY(cudaStreamSynchronize(stream));
  SAY(cudaFree(parameters.dptr));
  SAY(cudaFree(parameters.dptr));
  SAY(cudaGraphLaunch(executable, stream));
  SAY(cudaFreeAsync(parameters.dptr, stream));
  SAY(cudaStreamSynchronize(stream));
  SAY(cudaGraphExecDestroy(executable));
  SAY(cudaGraphInstantiate(&executable, graph, cudaGraphInstantiateFlagAutoFreeOnLaunch));
  SAY(cudaGraphLaunch(executable, stream));
  SAY(cudaGraphLaunch(executable, stream));
  SAY(cudaStreamSynchronize(stream));
  SAY(cudaGraphExecDestroy(executable));
  SAY(cudaFree(parameters.dptr));
  SAY(cudaDeviceGraphMemTrim(0));
  VALUE(used());
}

static int destroyed;
SECTION(userObjects) {
  setUp();
  cudaUserObject_t object;
  auto end = [](void*) { ++destroyed; };
  SAY(cudaUserObjectCreate(&object, nullptr, end, 1, 0));
  SAY(cudaUserObjectCreate(&object, nullptr, end, 0, cudaUserObjectNoDestructorSync));
  SAY(cudaUserObjectCreate(&object, nullptr, nullptr, 1, cudaUserObjectNoDestructorSync));
  SAY(cudaUserObjectCreate(&object, nullptr, end, 1, cudaUserObjectNoDestructorSync));
  SAY(cudaUserObjectRetain(object, 2));
  SAY(cudaGraphRetainUserObject(graph, object, 1, 7));
  SAY(cudaGraphRetainUserObject(graph, object, 2, cudaGraphUserObjectMove));
  SAY(cudaGraphReleaseUserObject(graph, object, 1));
  SAY(cudaUserObjectRelease(object, 1));
  SAY(cudaDeviceSynchronize());
  VALUE(destroyed);
  SAY(cudaGraphDestroy(graph));
  SAY(cudaDeviceSynchronize());
  usleep(100000);
  VALUE(destroyed);
}
