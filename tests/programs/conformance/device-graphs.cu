// Graphs that kernels launch and nodes that kernels change: the results for the host and for the kernels.
#include "../kernel-node.h"
#include "conformance.h"

using Node = cudaGraphDeviceNode_t;
__global__ void add(int* to, int first, int second) { to[blockIdx.x] += first * 100 + second; }
__global__ void nothing() {}
__global__ void launchKernel() { nothing<<<1, 1>>>(); }
__global__ void setValue(Node node, size_t offset, int value, int* error) { *error = cudaGraphKernelNodeSetParam(node, offset, value); }
__global__ void setGrid(Node node, unsigned x, unsigned y, int* error) { *error = cudaGraphKernelNodeSetGridDim(node, dim3(x, y)); }
__global__ void setEnabled(Node node, bool enabled, int* error) { *error = cudaGraphKernelNodeSetEnabled(node, enabled); }
__global__ void launchGraph(cudaGraphExec_t graph, int* error) { *error = cudaGraphLaunch(graph, cudaStreamGraphFireAndForget); }

static int *values, *error;
static cudaStream_t stream;
static cudaGraph_t graph;
static cudaGraphExec_t executable;
static cudaGraphNode_t one, two;

static void setUp() {
  CHECK(cudaMalloc(&values, 64));
  CHECK(cudaMalloc(&error, sizeof(int)));
  CHECK(cudaMemset(values, 0, 64));
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CHECK(cudaGraphCreate(&graph, 0));
}
static cudaGraphNode_t addAdding(cudaGraph_t to) { return addKernel(to, {}, add, values, 1, 2); }
static cudaError_t setNode(int updatable, Node* node = nullptr) {
  cudaKernelNodeAttrValue value{};
  value.deviceUpdatableKernelNode.deviceUpdatable = updatable;
  cudaError_t result = cudaGraphKernelNodeSetAttribute(one, cudaLaunchAttributeDeviceUpdatableKernelNode, &value);
  if (node != nullptr) *node = value.deviceUpdatableKernelNode.devNode;
  return result;
}
static int answered() {
  int answer = -1;
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaMemcpy(&answer, error, sizeof answer, cudaMemcpyDefault));
  return answer;
}
static int first() {
  int value = -1;
  CHECK(cudaStreamSynchronize(stream));
  CHECK(cudaMemcpy(&value, values, sizeof value, cudaMemcpyDefault));
  CHECK(cudaMemset(values, 0, 64));
  CHECK(cudaDeviceSynchronize());
  return value;
}

SECTION(nodesThatKernelsChange) {
  setUp();
  one = addAdding(graph);
  Node node = nullptr, again = nullptr;
  SAY(setNode(2));
  SAY(setNode(1, &node));
  VALUE(node != nullptr);
  SAY(setNode(1, &again));
  VALUE(again == node);
  SAY(setNode(0));
  cudaKernelNodeAttrValue value{};
  SAY(cudaGraphKernelNodeGetAttribute(one, cudaLaunchAttributeDeviceUpdatableKernelNode, &value));
  VALUE(value.deviceUpdatableKernelNode.deviceUpdatable);
  VALUE(value.deviceUpdatableKernelNode.devNode == node);
  two = addAdding(graph);
  SAY(cudaGraphKernelNodeCopyAttributes(two, one));
  SAY(cudaGraphKernelNodeCopyAttributes(one, two));
  SAY(cudaGraphKernelNodeGetAttribute(two, cudaLaunchAttributeDeviceUpdatableKernelNode, &value));
  VALUE(value.deviceUpdatableKernelNode.deviceUpdatable);
  cudaGraph_t copy, whole;
  cudaGraphNode_t child;
  SAY(cudaGraphClone(&copy, graph));
  CHECK(cudaGraphCreate(&whole, 0));
  SAY(cudaGraphAddChildGraphNode(&child, whole, nullptr, 0, graph));
  SAY(cudaGraphDestroyNode(one));
  cudaGraphExec_t other;
  SAY(cudaGraphInstantiate(&executable, graph, 0));
  SAY(cudaGraphInstantiate(&other, graph, 0));
  cudaGraphExecUpdateResultInfo info{};
  SAY(cudaGraphExecUpdate(executable, graph, &info));
  VALUE(info.result);
  SAY(cudaGraphExecDestroy(executable));
  SAY(cudaGraphInstantiate(&executable, graph, 0));
}

SECTION(changes) {
  setUp();
  one = addAdding(graph);
  Node node = nullptr;
  CHECK(setNode(1, &node));
  CHECK(cudaGraphInstantiate(&executable, graph, 0));
  setValue<<<1, 1>>>(node, 8, 5, error);
  VALUE(answered());  // it is not uploaded
  SAY(cudaGraphUpload(executable, stream));
  setValue<<<1, 1>>>(node, 8, 5, error);
  VALUE(answered());
  SAY(cudaGraphLaunch(executable, stream));
  VALUE(first());
  for (size_t offset : {12, 13, 16, 4096}) {
    setValue<<<1, 1>>>(node, offset, 5, error);
    VALUE(offset);
    VALUE(answered());
  }
  setGrid<<<1, 1>>>(node, 0, 1, error);
  VALUE(answered());
  setGrid<<<1, 1>>>(node, 1, 65536, error);
  VALUE(answered());
  setEnabled<<<1, 1>>>(node, false, error);
  VALUE(answered());
  SAY(cudaGraphLaunch(executable, stream));
  VALUE(first());
  unsigned enabled = 9;
  SAY(cudaGraphNodeGetEnabled(executable, one, &enabled));
  VALUE(enabled);
  setEnabled<<<1, 1>>>(node, true, error);
  answered();
  SAY(cudaGraphLaunch(executable, stream));
  VALUE(first());
  CHECK(cudaGraphDestroy(graph));  // the node remains in the executable graph
  setValue<<<1, 1>>>(node, 8, 7, error);
  VALUE(answered());
  SAY(cudaGraphLaunch(executable, stream));
  VALUE(first());
}

SECTION(capturedNodes) {
  setUp();
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeDeviceUpdatableKernelNode;
  attribute.val.deviceUpdatableKernelNode.deviceUpdatable = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = config.blockDim = dim3(1);
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = 1;
  SAY(cudaLaunchKernelEx(&config, add, values, 1, 2));
  SAY(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  SAY(cudaLaunchKernelEx(&config, add, values, 1, 2));
  VALUE(attribute.val.deviceUpdatableKernelNode.devNode != nullptr);
  SAY(cudaStreamEndCapture(stream, &graph));
  SAY(cudaGraphInstantiate(&executable, graph, 0));
}

static void CUDART_CB noFunction(void*) {}
static cudaError_t instantiate(const char* what, cudaGraph_t of, unsigned long long flags = 0) {
  cudaGraphInstantiateParams how{};
  how.flags = cudaGraphInstantiateFlagDeviceLaunch | flags;
  how.uploadStream = stream;
  unsigned long long kept = 0;
  executable = nullptr;
  cudaError_t result = say(what, cudaGraphInstantiateWithParams(&executable, of, &how));
  VALUE(how.result_out);
  VALUE(how.errNode_out != nullptr);
  if (result == cudaSuccess) SAY(cudaGraphExecGetFlags(executable, &kept));
  VALUE(kept);
  cudaGetLastError();
  return result;
}

SECTION(instantiationForKernels) {
  setUp();
  int local = 0;
  cudaEvent_t event;
  CHECK(cudaEventCreate(&event));
  auto made = [] {
    cudaGraph_t fresh;
    CHECK(cudaGraphCreate(&fresh, 0));
    return fresh;
  };
  cudaGraph_t of = made();
  instantiate("no nodes", of);
  one = addAdding(of);
  instantiate("a kernel", of);
  instantiate("a kernel, uploaded", of, cudaGraphInstantiateFlagUpload);
  instantiate("a kernel, freeing", of, cudaGraphInstantiateFlagAutoFreeOnLaunch);
  cudaGraph_t whole = made();
  CHECK(cudaGraphAddChildGraphNode(&one, whole, nullptr, 0, of));
  instantiate("a child", whole);
  CHECK(cudaGraphAddEmptyNode(&one, of, nullptr, 0));
  instantiate("an empty node", of);
  of = made();
  cudaMemsetParams fill{values, 0, 0, 4, 1, 1};
  CHECK(cudaGraphAddMemsetNode(&one, of, nullptr, 0, &fill));
  instantiate("a fill", of);
  CHECK(cudaGraphAddMemcpyNode1D(&one, of, nullptr, 0, values, values + 4, 16, cudaMemcpyDefault));
  instantiate("a copy", of);
  CHECK(cudaGraphAddMemcpyNode1D(&one, of, nullptr, 0, values, &local, 4, cudaMemcpyDefault));
  instantiate("a copy of pageable memory", of);
  of = made();
  cudaHostNodeParams host{noFunction, nullptr};
  CHECK(cudaGraphAddHostNode(&one, of, nullptr, 0, &host));
  instantiate("a host function", of);
  of = made();
  CHECK(cudaGraphAddEventRecordNode(&one, of, nullptr, 0, event));
  instantiate("a record", of);
  of = made();
  one = addKernel(of, {}, launchKernel);
  instantiate("a kernel that launches one", of);
  of = made();
  cudaGraphConditionalHandle condition;
  CHECK(cudaGraphConditionalHandleCreate(&condition, of, 1, cudaGraphCondAssignDefault));
  cudaGraphNodeParams parameters{};
  parameters.type = cudaGraphNodeTypeConditional;
  parameters.conditional.handle = condition;
  parameters.conditional.type = cudaGraphCondTypeIf;
  parameters.conditional.size = 1;
  CHECK(cudaGraphAddNode(&one, of, nullptr, nullptr, 0, &parameters));
  two = addAdding(parameters.conditional.phGraph_out[0]);
  instantiate("a conditional node", of);
}

SECTION(launchesByKernels) {
  setUp();
  one = addAdding(graph);
  cudaGraphExec_t launched, other, launches;
  CHECK(cudaGraphInstantiate(&launched, graph, cudaGraphInstantiateFlagDeviceLaunch));
  CHECK(cudaGraphInstantiate(&other, graph, cudaGraphInstantiateFlagDeviceLaunch));
  VALUE(launched != other);
  cudaGraph_t root;
  CHECK(cudaGraphCreate(&root, 0));
  two = addKernel(root, {}, launchGraph, launched, error);
  CHECK(cudaGraphInstantiate(&launches, root, 0));
  SAY(cudaGraphLaunch(launches, stream));
  VALUE(first());
  VALUE(answered());  // it is not uploaded
  SAY(cudaGraphUpload(launched, stream));
  SAY(cudaGraphLaunch(launches, stream));
  VALUE(first());
  VALUE(answered());
  int a = 9, b = 9;
  void* pointers[] = {&values, &a, &b};
  cudaKernelNodeParams nine{};
  nine.func = reinterpret_cast<void*>(add);
  nine.gridDim = nine.blockDim = dim3(1);
  nine.kernelParams = pointers;
  SAY(cudaGraphExecKernelNodeSetParams(launched, one, &nine));
  SAY(cudaGraphLaunch(launches, stream));
  VALUE(first());  // the change is not uploaded
  SAY(cudaGraphUpload(launched, stream));
  SAY(cudaGraphLaunch(launches, stream));
  VALUE(first());
  cudaGraphExecUpdateResultInfo info{};
  SAY(cudaGraphExecUpdate(launched, graph, &info));
  SAY(cudaGraphLaunch(launches, stream));
  VALUE(first());
  SAY(cudaGraphLaunch(launched, stream));
  VALUE(first());
  SAY(cudaGraphLaunch(launches, stream));
  VALUE(first());  // whether the host's launch has uploaded it
  launchGraph<<<1, 1>>>(other, error);
  SAY(cudaGetLastError());
}
