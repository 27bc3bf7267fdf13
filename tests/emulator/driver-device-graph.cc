// Graphs that kernels launch, and nodes that they change: the part of the driver's objects, limits and errors in it.
// tests/programs/device-graphs.cu and updated-nodes.cu test what programs do with them.
#include <algorithm>

#include "device-graph-text.h"
#include "driver-fixture.h"

using namespace vgpu::test;

namespace {

constexpr uint64_t firstGraph = 0x3f0000074300;

// A device with kernels that write notes, and graphs of one kernel each; kernels find the graphs' handles behind the notes.
class Graphs : public Device {
 public:
  explicit Graphs(const std::string& kernels = "", int ordinal = 0)
      : Device(ordinal), module(load((std::string(launchHeader) + std::string(graphCalls) + kernels).c_str())) {}

  CUgraph graphOf(const char* kernel, uint32_t what, CUgraphNode* made = nullptr) {
    CUgraph graph = nullptr;
    REQUIRE_CUDA(cuGraphCreate(&graph, 0));
    CUgraphNode node = nullptr;
    void* arguments[] = {&notes, &what};
    const CUDA_KERNEL_NODE_PARAMS params = paramsOf(kernel, arguments);
    REQUIRE_CUDA(cuGraphAddKernelNode(&node, graph, nullptr, 0, &params));
    if (made) *made = node;
    return graph;
  }
  CUDA_KERNEL_NODE_PARAMS paramsOf(const char* kernel, void** arguments) {
    CUDA_KERNEL_NODE_PARAMS params{};
    params.func = function(module, kernel);
    params.gridDimX = params.gridDimY = params.gridDimZ = 1;
    params.blockDimX = params.blockDimY = params.blockDimZ = 1;
    params.kernelParams = arguments;
    return params;
  }
  CUgraphExec instantiate(CUgraph graph, bool forKernels = true) {
    CUgraphExec made = nullptr;
    REQUIRE_CUDA(cuGraphInstantiate(&made, graph, forKernels ? CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH : 0));
    return made;
  }
  CUgraphExec uploaded(CUgraph graph) {
    CUgraphExec made = instantiate(graph);
    REQUIRE_CUDA(cuGraphUpload(made, nullptr));
    return made;
  }
  void give(size_t place, uint64_t handle) { REQUIRE_CUDA(cuMemcpyHtoD(notes + 32768 + place * 8, &handle, 8)); }
  void give(size_t place, CUgraphExec graph) { give(place, numberOf(graph)); }
  void give(size_t place, CUgraphDeviceNode node) { give(place, numberOf(node)); }
  template <class Handle>
  static uint64_t numberOf(Handle* handle) {
    return reinterpret_cast<uint64_t>(handle);
  }
  CUresult run(CUgraphExec graph) {
    const CUresult launched = cuGraphLaunch(graph, nullptr);
    return launched == CUDA_SUCCESS ? cuCtxSynchronize() : launched;
  }
  CUresult runKernel(const char* kernel, uint32_t what = 0) {
    const CUresult launched = launch(function(module, kernel), nullptr, 1, notes, what);
    return launched == CUDA_SUCCESS ? cuCtxSynchronize() : launched;
  }
  // The notes, sorted, because a graph launched from a kernel runs concurrently. Clears them.
  std::vector<uint32_t> noted() {
    std::vector<uint32_t> words(read(notes));
    if (!words.empty()) REQUIRE_CUDA(cuMemcpyDtoH(words.data(), notes + 4, words.size() * sizeof(uint32_t)));
    REQUIRE_CUDA(cuMemsetD32(notes, 0, 1));
    std::ranges::sort(words);
    return words;
  }

  CUmodule module;
  CUdeviceptr notes = allocate(1 << 16);
};

// Makes the node device-updatable; returns its device handle.
CUgraphDeviceNode letUpdate(CUgraphNode node) {
  CUkernelNodeAttrValue value{};
  value.deviceUpdatableKernelNode.deviceUpdatable = 1;
  REQUIRE_CUDA(cuGraphKernelNodeSetAttribute(node, CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE, &value));
  REQUIRE_CUDA(cuGraphKernelNodeGetAttribute(node, CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE, &value));
  return value.deviceUpdatableKernelNode.devNode;
}

// Kernel k launches the first graph `what` times, or each of the first `what` graphs once, and notes each error.
std::string launchRepeatedly(const char* stream, bool eachPlace) {
  return launchingKernel("k", std::string("add.u64 %d2, %d0, 32768;\nL: setp.eq.u32 %p, %r0, 0; @%p bra E; ld.u64 %d1, [%d2];") +
                                  graphLaunch("%d1", stream) + takeNote("%r9") + (eachPlace ? "add.u64 %d2, %d2, 8;" : "") +
                                  "sub.u32 %r0, %r0, 1; bra L;\nE:");
}
const std::string launchOnce = launchingKernel("k", "ld.u64 %d1, [%d0+32768];" + graphLaunch("%d1", besideStream) + takeNote("%r9"));
const std::string changeValue = launchingKernel("change", "ld.u64 %d1, [%d0+32768]; add.u64 %d2, %d0, 40960; st.u32 [%d2], %r0;" +
                                                              setParameter("%d1", "8", "%d2", "4") + takeNote("%r9"));

}  // namespace

TEST_CASE("device handles are adjacent in a block and are reused: those of graphs last freed first, those of nodes first freed first") {
  Graphs device;
  CUgraph graph = device.graphOf("note", 1);
  std::vector<CUgraphExec> made;
  for (int i = 0; i < 6; ++i) made.push_back(device.instantiate(graph));
  CUgraphExec ofHost = device.instantiate(graph, false);
  std::vector<uint64_t> numbers;
  for (CUgraphExec each : made) numbers.push_back(Graphs::numberOf(each));
  std::ranges::sort(numbers);
  CHECK_EQ(numbers[0], firstGraph);
  for (size_t i = 1; i < numbers.size(); ++i) CHECK_EQ(numbers[i], firstGraph + i * 192);
  CHECK(std::ranges::find(numbers, Graphs::numberOf(ofHost)) == numbers.end());
  for (int i : {1, 4, 2}) CHECK_CUDA(cuGraphExecDestroy(made[i]));
  for (int i : {2, 4, 1}) CHECK_EQ(device.instantiate(graph), made[i]);
  uint64_t word = 0;
  CHECK_ANSWER(cuMemcpyDtoH(&word, firstGraph, 8), CUDA_ERROR_INVALID_VALUE);
  for (CUgraphExec each : made) CHECK_CUDA(cuGraphExecDestroy(each));
  CHECK_ANSWER(cuGraphLaunch(made[0], nullptr), CUDA_ERROR_INVALID_VALUE);

  std::vector<uint64_t> nodes;
  CUgraph nodesOf[3] = {};
  for (CUgraph& each : nodesOf) {
    CUgraphNode node = nullptr;
    each = device.graphOf("note", 1, &node);
    nodes.push_back(Graphs::numberOf(letUpdate(node)));
    CHECK_EQ(Graphs::numberOf(letUpdate(node)), nodes.back());
  }
  for (int i : {1, 0}) CHECK_CUDA(cuGraphDestroy(nodesOf[i]));
  for (int i : {1, 0}) {
    CUgraphNode node = nullptr;
    device.graphOf("note", 1, &node);
    CHECK_EQ(Graphs::numberOf(letUpdate(node)), nodes[i]);
  }
  std::ranges::sort(nodes);
  CHECK_EQ(nodes[1], nodes[0] + 256);
  CHECK_EQ(nodes[2], nodes[1] + 256);
}

TEST_CASE("in each of its launches a graph may start as many fire-and-forget graphs as the programming guide says") {
  constexpr uint32_t most = 120;
  Graphs device(launchingKernel("nothing", "") + launchRepeatedly(besideStream, true));
  CUgraph beside = device.graphOf("nothing", 0);
  for (uint32_t i = 0; i <= most; ++i) device.give(i, device.uploaded(beside));
  CUgraphExec root = device.instantiate(device.graphOf("k", most + 1));
  std::vector<uint32_t> expected(most);
  expected.push_back(1);
  for (int i = 0; i < 2; ++i) {
    CHECK_CUDA(device.run(root));
    CHECK(device.noted() == expected);
  }
}

TEST_CASE("as many graphs wait as tail launches as on an H100, each of them once") {
  constexpr uint32_t most = 255;
  Graphs device(launchRepeatedly(tailStream, true));
  CUgraph behind = device.graphOf("note", 7);
  for (uint32_t i = 0; i <= most; ++i) device.give(i, device.uploaded(behind));
  CUgraphExec root = device.instantiate(device.graphOf("k", most + 1));
  std::vector<uint32_t> expected(most);
  expected.push_back(1);
  expected.insert(expected.end(), most, 7);
  CHECK_CUDA(device.run(root));
  CHECK(device.noted() == expected);
  Graphs same(launchRepeatedly(tailStream, false));
  same.give(0, same.uploaded(same.graphOf("note", 7)));
  for (int i = 0; i < 2; ++i) {
    CHECK_CUDA(same.run(same.instantiate(same.graphOf("k", 3))));
    CHECK(same.noted() == std::vector<uint32_t>{0, 1, 1, 7});
  }
}

TEST_CASE("a graph can have one pending tail launch of itself") {
  const std::string launchIt = graphLaunch("%d1", tailStream) + takeNote("%r9");
  Graphs device(launchingKernel("k", "ld.u32 %r1, [%d0]; setp.ge.u32 %p, %r1, 6; @%p ret; mov.u64 %d1, %current_graph_exec;" +
                                         launchIt + launchIt));
  CHECK_CUDA(device.run(device.instantiate(device.graphOf("k", 0))));
  CHECK(device.noted() == std::vector<uint32_t>{0, 0, 0, 1, 1, 1});
}

TEST_CASE("a fault in a graph launched from a kernel is a fault of the context, and ends the launched graphs") {
  for (const char* stream : {tailStream, besideStream}) {
    Graphs device(launchingKernel("child", "mov.u64 %d1, 64; st.u32 [%d1], 1;") + launchRepeatedly(stream, false));
    device.give(0, device.uploaded(device.graphOf("child", 0)));
    CUgraphExec root = device.instantiate(device.graphOf("k", 1));
    CHECK_ANSWER(device.run(root), CUDA_ERROR_ILLEGAL_ADDRESS);
    CHECK_ANSWER(cuGraphLaunch(root, nullptr), CUDA_ERROR_ILLEGAL_ADDRESS);
  }
}

TEST_CASE("kernels cannot launch the host's graphs, nor another device's: their handles are no valid addresses there") {
  for (bool isFar : {false, true}) {
    Graphs far(launchOnce, 1), device(launchOnce);
    REQUIRE_CUDA(cuCtxSetCurrent(isFar ? far.context : device.context));
    Graphs& owner = isFar ? far : device;
    CUgraphExec other = owner.instantiate(owner.graphOf("note", 1), isFar);
    if (isFar) REQUIRE_CUDA(cuGraphUpload(other, nullptr));
    REQUIRE_CUDA(cuCtxSynchronize());
    REQUIRE_CUDA(cuCtxSetCurrent(device.context));
    device.give(0, other);
    CHECK_ANSWER(device.run(device.instantiate(device.graphOf("k", 0))), CUDA_ERROR_ILLEGAL_ADDRESS);
  }
}

TEST_CASE("other addresses in the driver's block are no valid handle, and the block ends after its last piece") {
  Graphs device(launchOnce);
  CUgraphExec gone = device.uploaded(device.graphOf("note", 1)), root = device.instantiate(device.graphOf("k", 0));
  REQUIRE_CUDA(cuGraphExecDestroy(gone));
  for (uint64_t address : {Graphs::numberOf(gone), Graphs::numberOf(root) + 8, firstGraph - 0x74300, (firstGraph | 0x1fffff) - 1}) {
    device.give(0, address);
    CHECK_CUDA(device.run(root));
    CHECK(device.noted() == std::vector<uint32_t>{1});
  }
  device.give(0, (firstGraph | 0x1fffff) + 1);
  CHECK_ANSWER(device.run(root), CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_CASE("an executable graph whose kernels change its nodes may be destroyed while it runs") {
  Graphs device(changeValue);
  CUmodule kernels = device.load();
  CUgraphNode node = nullptr, behind = nullptr;
  CUgraph graph = device.graphOf("change", 5, &node);
  uint32_t what = 3;
  void* arguments[] = {&device.notes, &what};
  const CUDA_KERNEL_NODE_PARAMS params = device.paramsOf("note", arguments);
  REQUIRE_CUDA(cuGraphAddKernelNode(&behind, graph, &node, 1, &params));
  device.give(0, letUpdate(behind));
  CUgraphExec made = device.instantiate(graph, false);
  constexpr size_t bytes = 64 << 10;
  CUdeviceptr word = device.allocate(4), filled = device.allocate(bytes);
  CUstream stream = nullptr, free = nullptr;
  REQUIRE_CUDA(cuStreamCreate(&stream, CU_STREAM_DEFAULT));
  REQUIRE_CUDA(cuStreamCreate(&free, CU_STREAM_NON_BLOCKING));
  REQUIRE_CUDA(launch(function(kernels, "waitFor"), stream, 1, word, 1u));
  REQUIRE_CUDA(cuGraphLaunch(made, stream));
  // Much work begins when the launch has ended: the completion of the graph must not wait for that work.
  CUgraph much = nullptr;
  REQUIRE_CUDA(cuGraphCreate(&much, 0));
  const CUDA_MEMSET_NODE_PARAMS fill{.dst = filled, .elementSize = 4, .width = bytes / 4, .height = 1};
  for (int i = 0; i < 100; ++i) REQUIRE_CUDA(cuGraphAddMemsetNode(&behind, much, nullptr, 0, &fill, device.context));
  REQUIRE_CUDA(cuGraphLaunch(device.instantiate(much, false), nullptr));
  CHECK_CUDA(cuGraphExecDestroy(made));
  device.instantiate(graph, false);
  REQUIRE_CUDA(launch(function(kernels, "store"), free, 1, word, 1u));
  REQUIRE_CUDA(cuStreamSynchronize(stream));
  REQUIRE_CUDA(launch(function(device.module, "change"), free, 1, device.notes, 6u));
  CHECK_CUDA(cuCtxSynchronize());
  CHECK(device.noted() == std::vector<uint32_t>{0, 1, 5});
}

TEST_CASE("kernels launch an updated graph in the state of its last upload") {
  Graphs device(launchOnce);
  CUgraphNode node = nullptr;
  CUgraphExec graph = device.uploaded(device.graphOf("note", 3, &node)), root = device.instantiate(device.graphOf("k", 0));
  device.give(0, graph);
  uint32_t value = 4;
  void* arguments[] = {&device.notes, &value};
  const CUDA_KERNEL_NODE_PARAMS params = device.paramsOf("note", arguments);
  REQUIRE_CUDA(cuGraphExecKernelNodeSetParams(graph, node, &params));
  CHECK_CUDA(device.run(root));
  CHECK(device.noted() == std::vector<uint32_t>{0, 3});
  REQUIRE_CUDA(cuGraphUpload(graph, nullptr));
  CHECK_CUDA(device.run(root));
  CHECK(device.noted() == std::vector<uint32_t>{0, 4});
}

TEST_CASE("the node type that a device graph cannot contain is named") {
  Graphs device(launchingKernel("parent", launchOf("note", "1")));
  CUgraphNode node = nullptr;
  CUgraph graph = device.graphOf("parent", 0, &node);
  CUgraphExec made = nullptr;
  CUDA_GRAPH_INSTANTIATE_PARAMS params{.flags = CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH};
  CHECK_ANSWER(cuGraphInstantiateWithParams(&made, graph, &params), CUDA_ERROR_INVALID_VALUE);
  CHECK_EQ(params.result_out, CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED);
  CHECK_EQ(params.hErrNode_out, node);

  CUgraph none = nullptr;
  REQUIRE_CUDA(cuGraphCreate(&none, 0));
  CHECK_ANSWER(cuGraphInstantiateWithParams(&made, none, &params), CUDA_ERROR_INVALID_VALUE);
  CHECK_EQ(params.result_out, CUDA_GRAPH_INSTANTIATE_ERROR);
  CHECK_EQ(params.hErrNode_out, nullptr);
  params.flags = CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH;
  CHECK_ANSWER(cuGraphInstantiateWithParams(&made, device.graphOf("note", 0), &params), CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("a device graph, and a graph whose kernels launch graphs, uses one context") {
  Graphs device(launchOnce), other(launchOnce);
  REQUIRE_CUDA(cuCtxSetCurrent(device.context));
  for (const char* kernel : {"note", "k"}) {
    CUgraph graph = device.graphOf(kernel, 0);
    uint32_t what = 0;
    void* arguments[] = {&device.notes, &what};
    CUDA_KERNEL_NODE_PARAMS params = other.paramsOf(kernel, arguments);
    CUgraphNode far = nullptr;
    REQUIRE_CUDA(cuGraphAddKernelNode(&far, graph, nullptr, 0, &params));
    CUgraphExec made = nullptr;
    CUDA_GRAPH_INSTANTIATE_PARAMS how{};
    if (*kernel == 'n') {
      CHECK_CUDA(cuGraphInstantiateWithParams(&made, graph, &how));
      how.flags = CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH;
    }
    CHECK_ANSWER(cuGraphInstantiateWithParams(&made, graph, &how), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQ(how.result_out, CUDA_GRAPH_INSTANTIATE_MULTIPLE_CTXS_NOT_SUPPORTED);
    CHECK_EQ(how.hErrNode_out, far);
  }
}

TEST_CASE("a node of a host graph cannot become one that launches graphs or changes nodes") {
  Graphs device(launchOnce + changeValue);
  CUgraphNode node = nullptr;
  CUgraph graph = device.graphOf("note", 0, &node);
  CUgraphExec made = device.instantiate(graph, false), forKernels = device.instantiate(graph);
  uint32_t what = 0;
  void* arguments[] = {&device.notes, &what};
  CUDA_KERNEL_NODE_PARAMS params = device.paramsOf("k", arguments);
  CHECK_ANSWER(cuGraphExecKernelNodeSetParams(made, node, &params), CUDA_ERROR_INVALID_VALUE);
  CHECK_CUDA(cuGraphExecKernelNodeSetParams(forKernels, node, &params));
  CUgraphExecUpdateResultInfo info{};
  CHECK_ANSWER(cuGraphExecUpdate(made, device.graphOf("k", 0), &info), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
  CHECK_EQ(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED);
  params = device.paramsOf("change", arguments);
  CHECK_ANSWER(cuGraphExecKernelNodeSetParams(made, node, &params), CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("kernels can change a node while an uploaded executable graph has it; one executable graph has it at a time") {
  Graphs device(changeValue);
  CUgraphNode node = nullptr;
  CUgraph graph = device.graphOf("note", 3, &node);
  device.give(0, letUpdate(node));
  const auto change = [&](uint32_t value) {
    REQUIRE_CUDA(device.runKernel("change", value));
    return device.noted();
  };
  const std::vector<uint32_t> wrong{1}, right{0};
  CHECK(change(5) == wrong);
  CUgraphExec first = device.instantiate(graph, false), second = nullptr;
  CHECK(change(5) == wrong);
  CHECK_ANSWER(cuGraphInstantiate(&second, graph, 0), CUDA_ERROR_NOT_SUPPORTED);
  REQUIRE_CUDA(cuGraphUpload(first, nullptr));
  CHECK(change(6) == right);
  CHECK_CUDA(device.run(first));
  CHECK(device.noted() == std::vector<uint32_t>{6});
  CHECK_CUDA(cuGraphExecDestroy(first));
  CHECK(change(7) == wrong);
  second = device.instantiate(graph, false);
  CHECK_CUDA(device.run(second));
  CHECK(device.noted() == std::vector<uint32_t>{3});
  CHECK(change(8) == right);
  // The node's handle is invalid when graph and executable graph are destroyed.
  CHECK_CUDA(cuGraphDestroy(graph));
  CHECK(change(9) == right);
  CHECK_CUDA(device.run(second));
  CHECK(device.noted() == std::vector<uint32_t>{9});
  CHECK_CUDA(cuGraphExecDestroy(second));
  CHECK(change(10) == wrong);
}

TEST_CASE("the device-updatable attribute belongs to a captured launch, is 0 or 1, and cannot be taken back") {
  Graphs device;
  CUlaunchAttribute attribute{};
  attribute.id = CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE;
  attribute.value.deviceUpdatableKernelNode.deviceUpdatable = 1;
  uint32_t what = 1;
  void* arguments[] = {&device.notes, &what};
  CUlaunchConfig config{1, 1, 1, 1, 1, 1, 0, nullptr, &attribute, 1};
  CUstream stream = nullptr;
  REQUIRE_CUDA(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  config.hStream = stream;
  CUfunction note = function(device.module, "note");
  CHECK_ANSWER(cuLaunchKernelEx(&config, note, arguments, nullptr), CUDA_ERROR_NOT_SUPPORTED);
  REQUIRE_CUDA(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  CHECK_CUDA(cuLaunchKernelEx(&config, note, arguments, nullptr));
  CUgraph graph = nullptr, copy = nullptr, parent = nullptr;
  REQUIRE_CUDA(cuStreamEndCapture(stream, &graph));
  CUgraphNode node = nullptr, child = nullptr;
  size_t count = 1;
  REQUIRE_CUDA(cuGraphGetNodes(graph, &node, &count));
  CHECK_EQ(letUpdate(node), attribute.value.deviceUpdatableKernelNode.devNode);
  CUkernelNodeAttrValue value{};
  CHECK_ANSWER(cuGraphKernelNodeSetAttribute(node, attribute.id, &value), CUDA_ERROR_NOT_SUPPORTED);
  value.deviceUpdatableKernelNode.deviceUpdatable = 2;
  CHECK_ANSWER(cuGraphKernelNodeSetAttribute(node, attribute.id, &value), CUDA_ERROR_INVALID_VALUE);
  value.deviceUpdatableKernelNode.deviceUpdatable = 1;
  CHECK_CUDA(cuGraphKernelNodeSetAttribute(node, attribute.id, &value));
  CHECK_EQ(value.deviceUpdatableKernelNode.devNode, attribute.value.deviceUpdatableKernelNode.devNode);
  CHECK_ANSWER(cuGraphClone(&copy, graph), CUDA_ERROR_NOT_SUPPORTED);
  REQUIRE_CUDA(cuGraphCreate(&parent, 0));
  CHECK_ANSWER(cuGraphAddChildGraphNode(&child, parent, nullptr, 0, graph), CUDA_ERROR_NOT_SUPPORTED);
  CHECK_ANSWER(cuGraphDestroyNode(node), CUDA_ERROR_NOT_SUPPORTED);
  CUgraphExecUpdateResultInfo info{};
  CHECK_ANSWER(cuGraphExecUpdate(device.instantiate(graph, false), graph, &info), CUDA_ERROR_NOT_SUPPORTED);
}

TEST_CASE("an upload is not captured") {
  Graphs device;
  CUgraphExec made = device.instantiate(device.graphOf("note", 1));
  CUstream stream = nullptr;
  REQUIRE_CUDA(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  REQUIRE_CUDA(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  CHECK_ANSWER(cuGraphUpload(made, stream), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  CUgraph graph = nullptr;
  CHECK_ANSWER(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

TEST_CASE("in a process: a graph that launches itself for ever" * doctest::skip()) {
  Graphs device(launchingKernel("k", "mov.u64 %d1, %current_graph_exec;" + graphLaunch("%d1", tailStream)));
  CHECK_ANSWER(device.run(device.instantiate(device.graphOf("k", 0))), CUDA_ERROR_LAUNCH_TIMEOUT);
}
