// Graph edges with ports: how a kernel may begin before the kernel that it depends on has ended.
#include <algorithm>

#include "../kernel-node.h"
#include "conformance.h"

// Captured ones may run concurrently.
__global__ void produce(int* to, int value) {
  cudaTriggerProgrammaticLaunchCompletion();
  atomicExch(&to[0], value);
}
__global__ void consume(int* from, int more) {
  cudaGridDependencySynchronize();
  atomicExch(&from[1], atomicAdd(&from[0], 0) + more);
}
static void CUDART_CB call(void*) {}

static int* values;
static cudaStream_t stream, other;
static cudaGraph_t graph;
static cudaEvent_t event;

static void setUp() {
  CHECK(cudaMalloc(&values, 64));
  CHECK(cudaMemset(values, 0, 64));
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
  CHECK(cudaGraphCreate(&graph, 0));
  CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
}
static cudaGraphEdgeData edge(unsigned fromPort, unsigned toPort, int type) {
  cudaGraphEdgeData data{};
  data.from_port = static_cast<unsigned char>(fromPort);
  data.to_port = static_cast<unsigned char>(toPort);
  data.type = static_cast<unsigned char>(type);
  return data;
}
static const cudaGraphEdgeData programmatic = edge(1, 0, 1), ordered = edge(2, 0, 1);
static std::string textOf(const cudaGraphEdgeData& data) {
  return "from port " + std::to_string(data.from_port) + ", to port " + std::to_string(data.to_port) + ", type " + std::to_string(data.type);
}
static cudaGraphNode_t addProduce() { return addKernel(graph, {}, produce, values, 5); }
static cudaGraphNode_t addConsume() { return addKernel(graph, {}, consume, values, 2); }
static cudaError_t join(cudaGraphNode_t from, cudaGraphNode_t to, cudaGraphEdgeData data) {
  return cudaGraphAddDependencies(graph, &from, &to, &data, 1);
}

// Names kernels by the width of their block, which is one larger for each captured kernel; other nodes by their type.
static std::string nameOf(cudaGraphNode_t node) {
  cudaGraphNodeType type;
  CHECK(cudaGraphNodeGetType(node, &type));
  cudaKernelNodeParams params{};
  if (type != cudaGraphNodeTypeKernel) return "type " + std::to_string(type);
  CHECK(cudaGraphKernelNodeGetParams(node, &params));
  return "kernel " + std::to_string(params.blockDim.x);
}
static void sayEdges(cudaGraph_t of) {
  cudaGraphNode_t from[16], to[16];
  cudaGraphEdgeData data[16];
  size_t count = 16;
  SAY(cudaGraphGetEdges(of, from, to, data, &count));
  std::vector<std::string> lines;
  for (size_t i = 0; i < count; ++i) lines.push_back(nameOf(from[i]) + " to " + nameOf(to[i]) + ": " + textOf(data[i]));
  std::sort(lines.begin(), lines.end());
  for (auto& line : lines) std::printf("%s: %s\n", currentSection, line.c_str());
}

SECTION(anyPorts) {
  setUp();
  for (unsigned fromPort : {0, 1, 2, 3})
    for (unsigned toPort : {0, 1})
      for (int type : {0, 1, 2}) {
        auto data = edge(fromPort, toPort, type);
        say(textOf(data).c_str(), join(addProduce(), addConsume(), data));
      }
  auto data = programmatic;
  data.reserved[0] = 1;
  say("with a reserved byte", join(addProduce(), addConsume(), data));
  cudaGraphExec_t executable;
  SAY(cudaGraphInstantiate(&executable, graph, 0));
}

SECTION(otherNodes) {
  setUp();
  cudaGraphNode_t fill, empty, record, host, child;
  cudaGraph_t inner;
  cudaMemsetParams fills{};
  fills.dst = values;
  fills.elementSize = 4;
  fills.width = fills.height = 1;
  cudaHostNodeParams calls{call, nullptr};
  CHECK(cudaGraphCreate(&inner, 0));
  CHECK(cudaGraphAddMemsetNode(&fill, graph, nullptr, 0, &fills));
  CHECK(cudaGraphAddEmptyNode(&empty, graph, nullptr, 0));
  CHECK(cudaGraphAddEventRecordNode(&record, graph, nullptr, 0, event));
  CHECK(cudaGraphAddHostNode(&host, graph, nullptr, 0, &calls));
  CHECK(cudaGraphAddChildGraphNode(&child, graph, nullptr, 0, inner));
  for (auto& data : {programmatic, ordered, edge(1, 0, 0), edge(2, 0, 0), edge(0, 0, 1)}) {
    std::printf("%s: %s\n", currentSection, textOf(data).c_str());
    for (auto node : {fill, empty, record, host, child}) {
      say((nameOf(node) + " to a kernel").c_str(), join(node, addConsume(), data));
      say(("a kernel to " + nameOf(node)).c_str(), join(addProduce(), node, data));
    }
  }
}

SECTION(reading) {
  setUp();
  auto first = addProduce(), second = addConsume();
  SAY(join(first, second, programmatic));
  cudaGraphNode_t nodes[2], others[2];
  cudaGraphEdgeData data[2] = {ordered, ordered};
  size_t count = 2;
  SAY(cudaGraphGetEdges(graph, nodes, others, data, &count));
  VALUE(count);
  std::printf("%s: %s\n", currentSection, textOf(data[0]).c_str());
  count = 2;
  SAY(cudaGraphGetEdges(graph, nodes, others, nullptr, &count));
  VALUE(count);
  SAY(cudaGraphGetEdges(graph, nullptr, nullptr, nullptr, &count));
  VALUE(count);
  count = 2;
  SAY(cudaGraphNodeGetDependencies(second, nodes, nullptr, &count));
  VALUE(count);
  count = 2;
  SAY(cudaGraphNodeGetDependencies(second, nodes, data, &count));
  std::printf("%s: %s\n", currentSection, textOf(data[0]).c_str());
  SAY(cudaGraphNodeGetDependencies(second, nullptr, nullptr, &count));
  count = 2;
  SAY(cudaGraphNodeGetDependentNodes(first, nodes, nullptr, &count));
  count = 2;
  SAY(cudaGraphNodeGetDependentNodes(first, nodes, data, &count));
  std::printf("%s: %s\n", currentSection, textOf(data[0]).c_str());
}

SECTION(twoEdges) {
  setUp();
  auto first = addProduce(), second = addConsume();
  SAY(join(first, second, programmatic));
  SAY(join(first, second, programmatic));
  SAY(join(first, second, ordered));
  SAY(join(first, second, edge(0, 0, 0)));
  sayEdges(graph);
  SAY(cudaGraphRemoveDependencies(graph, &first, &second, &ordered, 1));
  sayEdges(graph);
  SAY(cudaGraphRemoveDependencies(graph, &first, &second, nullptr, 1));
  sayEdges(graph);
  SAY(cudaGraphRemoveDependencies(graph, &first, &second, &programmatic, 1));
  sayEdges(graph);
  SAY(cudaGraphRemoveDependencies(graph, &first, &second, &programmatic, 1));
}

SECTION(addedWithEdges) {
  setUp();
  int more = 3;
  void* arguments[] = {&values, &more};
  cudaGraphNodeParams params{};
  params.type = cudaGraphNodeTypeKernel;
  params.kernel.func = reinterpret_cast<void*>(consume);
  params.kernel.gridDim = params.kernel.blockDim = dim3(1);
  params.kernel.kernelParams = arguments;
  cudaGraphNode_t node, before[2] = {addProduce(), addProduce()};
  cudaGraphEdgeData data[2] = {programmatic, ordered};
  SAY(cudaGraphAddNode(&node, graph, before, data, 2, &params));
  sayEdges(graph);
  data[1] = edge(3, 0, 1);
  SAY(cudaGraphAddNode(&node, graph, before, data, 2, &params));
  before[1] = before[0];
  data[1] = ordered;
  SAY(cudaGraphAddNode(&node, graph, before, data, 2, &params));
  sayEdges(graph);
}

SECTION(runs) {
  for (auto& data : {programmatic, ordered, edge(0, 0, 0)}) {
    setUp();
    SAY(join(addProduce(), addConsume(), data));
    cudaGraph_t copy;
    SAY(cudaGraphClone(&copy, graph));
    sayEdges(copy);
    cudaGraphExec_t executable;
    SAY(cudaGraphInstantiate(&executable, copy, 0));
    for (int i = 0; i < 2; ++i) SAY(cudaGraphLaunch(executable, stream));
    SAY(cudaStreamSynchronize(stream));
    int found[2] = {};
    CHECK(cudaMemcpy(found, values, sizeof found, cudaMemcpyDefault));
    VALUE(found[1]);
  }
}

SECTION(updates) {
  setUp();
  auto first = addProduce(), second = addConsume();
  CHECK(join(first, second, programmatic));
  cudaGraphExec_t executable;
  cudaGraphExecUpdateResultInfo info{};
  SAY(cudaGraphInstantiate(&executable, graph, 0));
  SAY(cudaGraphExecUpdate(executable, graph, &info));
  VALUE(info.result);
  CHECK(cudaGraphRemoveDependencies(graph, &first, &second, &programmatic, 1));
  CHECK(join(first, second, ordered));
  SAY(cudaGraphExecUpdate(executable, graph, &info));
  VALUE(info.result);
  CHECK(cudaGraphRemoveDependencies(graph, &first, &second, &ordered, 1));
  CHECK(join(first, second, edge(0, 0, 0)));
  SAY(cudaGraphExecUpdate(executable, graph, &info));
  VALUE(info.result);
}

static unsigned launched;
struct Attributes {
  cudaLaunchAttribute all[2] = {};
  unsigned count = 0;
  cudaLaunchAttribute& add(cudaLaunchAttributeID id) {
    all[count].id = id;
    return all[count++];
  }
};
static Attributes serialized(int allowed = 1) {
  Attributes attributes;
  attributes.add(cudaLaunchAttributeProgrammaticStreamSerialization).val.programmaticStreamSerializationAllowed = allowed;
  return attributes;
}
static Attributes recording(int atBlockStart, int flags = 0) {
  Attributes attributes;
  auto& value = attributes.add(cudaLaunchAttributeProgrammaticEvent).val.programmaticEvent;
  value.event = event;
  value.flags = flags;
  value.triggerAtBlockStart = atBlockStart;
  return attributes;
}
static Attributes completing(int flags = 0) {
  Attributes attributes;
  auto& value = attributes.add(cudaLaunchAttributeLaunchCompletionEvent).val.launchCompletionEvent;
  value.event = event;
  value.flags = flags;
  return attributes;
}
static cudaError_t launch(cudaStream_t in, Attributes attributes = {}, void (*kernel)(int*, int) = consume) {
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(1);
  config.blockDim = dim3(++launched);
  config.stream = in;
  config.attrs = attributes.all;
  config.numAttrs = attributes.count;
  return cudaLaunchKernelEx(&config, kernel, values + 4, 2);  // separate from the words that are filled
}
static void comesBehind(cudaStream_t waiting, cudaStream_t awaited) {
  CHECK(cudaEventRecord(event, awaited));
  CHECK(cudaStreamWaitEvent(waiting, event, 0));
}
static void beginCapture() {
  launched = 0;
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
}
static void endCapture() {
  cudaGraph_t captured = nullptr;
  SAY(cudaStreamEndCapture(stream, &captured));
  if (captured == nullptr) return;
  sayEdges(captured);
  cudaGraphExec_t executable;
  SAY(cudaGraphInstantiate(&executable, captured, 0));
  SAY(cudaGraphLaunch(executable, stream));
  SAY(cudaStreamSynchronize(stream));
}
// Prints the dependencies of a stream's next node.
static void sayTail(cudaStream_t of) {
  cudaStreamCaptureStatus status;
  unsigned long long id;
  cudaGraph_t captured;
  const cudaGraphNode_t* nodes = nullptr;
  const cudaGraphEdgeData* data = nullptr;
  size_t count = 0;
  SAY(cudaStreamGetCaptureInfo(of, &status, &id, &captured, &nodes, nullptr, &count));
  SAY(cudaStreamGetCaptureInfo(of, &status, &id, &captured, nullptr, nullptr, nullptr));
  SAY(cudaStreamGetCaptureInfo(of, &status, &id, &captured, &nodes, &data, &count));
  std::vector<std::string> lines;
  for (size_t i = 0; i < count; ++i) lines.push_back("tail " + nameOf(nodes[i]) + ": " + textOf(data[i]));
  std::sort(lines.begin(), lines.end());
  for (auto& line : lines) std::printf("%s: %s\n", currentSection, line.c_str());
}

SECTION(serializedLaunches) {
  setUp();
  beginCapture();
  SAY(launch(stream, serialized()));
  sayTail(stream);
  SAY(launch(stream, serialized()));
  SAY(launch(stream, serialized(0)));
  SAY(launch(stream, serialized()));
  SAY(launch(stream));
  SAY(cudaMemsetAsync(values, 0, 4, stream));
  SAY(launch(stream, serialized()));
  endCapture();
}

SECTION(serializedJoin) {
  setUp();
  beginCapture();
  SAY(launch(stream));
  comesBehind(other, stream);
  SAY(launch(other, serialized()));
  SAY(launch(stream, serialized()));
  comesBehind(stream, other);
  sayTail(stream);
  SAY(launch(stream, serialized()));
  endCapture();
  beginCapture();
  comesBehind(other, stream);
  SAY(launch(stream));
  SAY(cudaMemsetAsync(values, 0, 4, other));
  comesBehind(stream, other);
  SAY(launch(stream, serialized()));
  endCapture();
}

static void recordAndWait(Attributes recorded, Attributes waiting) {
  beginCapture();
  SAY(launch(stream, recorded, produce));
  SAY(cudaStreamWaitEvent(other, event, 0));
  sayTail(other);
  SAY(launch(other, waiting));
  comesBehind(stream, other);
  sayTail(stream);
  SAY(launch(stream));
  endCapture();
}
SECTION(programmaticEvents) {
  setUp();
  recordAndWait(recording(0), {});
  recordAndWait(recording(1), {});
  recordAndWait(recording(0), serialized());
}
SECTION(completionEvents) {
  setUp();
  recordAndWait(completing(), {});
  recordAndWait(completing(), serialized());
}

SECTION(eventBeforeOtherNodes) {
  setUp();
  beginCapture();
  SAY(launch(stream, recording(0), produce));
  SAY(cudaStreamWaitEvent(other, event, 0));
  SAY(cudaMemsetAsync(values, 0, 4, other));
  comesBehind(stream, other);
  endCapture();
}

SECTION(twoEventsOfOneKernel) {
  setUp();
  beginCapture();
  SAY(launch(stream, recording(0), produce));
  SAY(cudaStreamWaitEvent(other, event, 0));
  CHECK(cudaEventRecord(event, stream));
  SAY(cudaStreamWaitEvent(other, event, 0));
  sayTail(other);
  SAY(launch(other, completing()));
  SAY(cudaStreamWaitEvent(stream, event, 0));
  sayTail(stream);
  SAY(launch(stream, serialized()));
  comesBehind(stream, other);
  endCapture();
}

SECTION(eventInItsOwnStream) {
  setUp();
  beginCapture();
  SAY(launch(stream, recording(0), produce));
  SAY(cudaStreamWaitEvent(stream, event, 0));
  sayTail(stream);
  SAY(launch(stream));
  endCapture();
}

SECTION(externalEvents) {
  setUp();
  beginCapture();
  SAY(launch(stream, recording(0, cudaEventRecordExternal), produce));
  SAY(launch(stream, completing(cudaEventRecordExternal), produce));
  sayTail(stream);
  SAY(cudaStreamWaitEvent(other, event, 0));
  endCapture();
}

SECTION(givenTails) {
  setUp();
  auto first = addProduce();
  SAY(cudaStreamBeginCaptureToGraph(stream, graph, &first, &programmatic, 1, cudaStreamCaptureModeRelaxed));
  sayTail(stream);
  launched = 1;
  SAY(launch(stream));
  SAY(cudaStreamEndCapture(stream, &graph));
  sayEdges(graph);
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  launched = 0;
  SAY(launch(stream));
  const cudaGraphNode_t* nodes;
  const cudaGraphEdgeData* data;
  cudaStreamCaptureStatus status;
  size_t count;
  SAY(cudaStreamGetCaptureInfo(stream, &status, nullptr, nullptr, &nodes, &data, &count));
  cudaGraphNode_t node = nodes[0];
  auto bad = edge(3, 0, 1), given = programmatic;
  SAY(cudaStreamUpdateCaptureDependencies(stream, &node, &bad, 1, cudaStreamSetCaptureDependencies));
  SAY(cudaStreamUpdateCaptureDependencies(stream, &node, &given, 1, cudaStreamAddCaptureDependencies));
  sayTail(stream);
  SAY(cudaStreamUpdateCaptureDependencies(stream, &node, &given, 1, cudaStreamSetCaptureDependencies));
  sayTail(stream);
  SAY(launch(stream));
  endCapture();
}

SECTION(attributes) {
  setUp();
  beginCapture();
  SAY(launch(stream));
  SAY(launch(stream, serialized()));
  SAY(launch(stream, recording(1)));
  cudaGraph_t captured;
  SAY(cudaStreamEndCapture(stream, &captured));
  cudaGraphNode_t nodes[3];
  size_t count = 3;
  CHECK(cudaGraphGetNodes(captured, nodes, &count));
  std::sort(nodes, nodes + count, [](auto a, auto b) { return nameOf(a) < nameOf(b); });
  for (size_t i = 0; i < count; ++i) {
    cudaKernelNodeAttrValue value{};
    SAY(cudaGraphKernelNodeGetAttribute(nodes[i], cudaLaunchAttributeProgrammaticStreamSerialization, &value));
    VALUE(value.programmaticStreamSerializationAllowed);
    value = {};
    SAY(cudaGraphKernelNodeGetAttribute(nodes[i], cudaLaunchAttributeProgrammaticEvent, &value));
    VALUE(value.programmaticEvent.triggerAtBlockStart);
    SAY(cudaGraphKernelNodeGetAttribute(nodes[i], cudaLaunchAttributeLaunchCompletionEvent, &value));
  }
  cudaKernelNodeAttrValue value{};
  value.programmaticStreamSerializationAllowed = 1;
  SAY(cudaGraphKernelNodeSetAttribute(nodes[0], cudaLaunchAttributeProgrammaticStreamSerialization, &value));
  value = {};
  value.programmaticEvent.event = event;
  SAY(cudaGraphKernelNodeSetAttribute(nodes[0], cudaLaunchAttributeProgrammaticEvent, &value));
}
