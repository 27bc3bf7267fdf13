// Graph nodes that kernels change (CUDA Programming Guide, "Device-updatable kernel nodes"; nvcc -rdc=true): their parameters, their grid,
// whether they are enabled; one by one and in batches; from the same graph, another one, and from no graph. How long a change lasts, and
// errors. The nodes' handles are kept in device memory.
#include <memory>

#include "kernel-node.h"

constexpr int notTried = cudaErrorUnknown;

struct Wide {
  char letter;
  double scale;
  unsigned words[5];
};
__global__ void add(unsigned* to, unsigned value) { atomicAdd(to, value); }
__global__ void addWide(unsigned* to, Wide wide) { atomicAdd(to, wide.letter + unsigned(wide.scale) + wide.words[4]); }

// Offsets of these kernels' parameters.
constexpr size_t placeOfTo = 0, placeOfValue = 8;

using Node = cudaGraphDeviceNode_t;
__global__ void setValue(const Node* node, unsigned value, int* error) { *error = cudaGraphKernelNodeSetParam(*node, placeOfValue, value); }
__global__ void setTo(const Node* node, unsigned* to, int* error) { *error = cudaGraphKernelNodeSetParam(*node, placeOfTo, to); }
__global__ void setWide(const Node* node, Wide wide, int* error) { *error = cudaGraphKernelNodeSetParam(*node, placeOfValue, wide); }
__global__ void setGrid(const Node* node, unsigned x, unsigned y, unsigned z, int* error) {
  *error = cudaGraphKernelNodeSetGridDim(*node, dim3(x, y, z));
}
__global__ void setEnabled(const Node* node, bool enabled, int* error) { *error = cudaGraphKernelNodeSetEnabled(*node, enabled); }
__global__ void setNext(const Node* node, unsigned* counter, int* error) {
  *error = cudaGraphKernelNodeSetParam(*node, placeOfValue, ++*counter);
}
__global__ void launch(const cudaGraphExec_t* graph, const Node* node, unsigned value, int* errors) {
  errors[0] = cudaGraphKernelNodeSetParam(*node, placeOfValue, value);
  errors[1] = cudaGraphLaunch(*graph, cudaStreamGraphFireAndForget);
}
// Changes two nodes: the first gets a value and a grid, the second is disabled or enabled.
__global__ void setAll(const Node* nodes, unsigned value, unsigned blocks, bool enabled, int* error) {
  cudaGraphKernelNodeUpdate updates[] = {{nodes[0], cudaGraphKernelNodeFieldGridDim, {dim3(blocks)}},
                                         {nodes[0], cudaGraphKernelNodeFieldParam, {dim3(1)}},
                                         {nodes[1], cudaGraphKernelNodeFieldEnabled, {dim3(1)}}};
  updates[1].updateData.param.pValue = &value;
  updates[1].updateData.param.offset = placeOfValue;
  updates[1].updateData.param.size = sizeof value;
  updates[2].updateData.isEnabled = enabled;
  *error = cudaGraphKernelNodeUpdatesApply(updates, 3);
}
__global__ void setWrong(const Node* node, const Wide* wide, int* errors) {
  errors[0] = cudaGraphKernelNodeSetGridDim(*node, dim3(0, 1, 1));
  errors[1] = cudaGraphKernelNodeSetGridDim(*node, dim3(1, 65536, 1));
  errors[2] = cudaGraphKernelNodeSetParam(*node, placeOfValue, wide, sizeof *wide);
  errors[3] = cudaGraphKernelNodeSetParam(*node, 1024, wide, 4);
}

namespace {

// Makes the node device-updatable.
Node letUpdate(cudaGraphNode_t node) {
  cudaKernelNodeAttrValue value{}, answer{};
  value.deviceUpdatableKernelNode.deviceUpdatable = 1;
  CHECK(cudaGraphKernelNodeSetAttribute(node, cudaLaunchAttributeDeviceUpdatableKernelNode, &value));
  CHECK(cudaGraphKernelNodeGetAttribute(node, cudaLaunchAttributeDeviceUpdatableKernelNode, &answer));
  EXPECT(answer.deviceUpdatableKernelNode.deviceUpdatable == 1);
  return answer.deviceUpdatableKernelNode.devNode;
}

struct Graph {
  Graph() { CHECK(cudaGraphCreate(&graph, 0)); }
  ~Graph() {
    if (executable != nullptr) CHECK(cudaGraphExecDestroy(executable));
    CHECK(cudaGraphDestroy(graph));
  }
  Graph(const Graph&) = delete;
  void upload(unsigned long long flags = 0) {
    CHECK(cudaGraphInstantiate(&executable, graph, flags));
    CHECK(cudaGraphUpload(executable, nullptr));
  }
  void run() { CHECK(cudaGraphLaunch(executable, nullptr)); }
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
};

// ---- A graph with two nodes that add to two words; kernels that are not in a graph change them.
struct Changed {
  Changed() {
    first = addKernel<unsigned*, unsigned>(graph.graph, {}, add, words, 1u);
    second = addKernel<unsigned*, unsigned>(graph.graph, {first}, add, words + 1, 10u);
    nodes.upload({letUpdate(first), letUpdate(second)});
    setValue<<<1, 1>>>(nodes, 5, errors);  // before it is uploaded
    graph.upload();
  }
  bool has(unsigned one, unsigned other, unsigned third = 0) {
    words.upload({0, 0, 0});
    graph.run();
    return same("words", words.download(), {one, other, third}) & same("of changes", errors.download(), {expected});
  }
  bool check() {
    bool ok = has(value, 10);
    expected = cudaSuccess;
    setGrid<<<1, 1>>>(nodes, 1, 1, 1, errors);
    setValue<<<1, 1>>>(nodes, 7, errors);
    ok &= has(7, 10) & has(7, 10);
    setGrid<<<1, 1>>>(nodes, 2, 3, 4, errors);
    ok &= has(7 * 24, 10);
    setEnabled<<<1, 1>>>(nodes + 1, false, errors);
    ok &= has(7 * 24, 0) & has(7 * 24, 0);
    CHECK(cudaGraphUpload(graph.executable, nullptr));  // does not undo the changes
    ok &= has(7 * 24, 0);
    setTo<<<1, 1>>>(nodes, words + 2, errors);
    ok &= has(0, 0, 7 * 24);
    setEnabled<<<1, 1>>>(nodes + 1, true, errors);
    ok &= has(0, 10, 7 * 24);
    setAll<<<1, 1>>>(nodes, 4, 5, false, errors);
    ok &= has(0, 0, 20);
    setAll<<<1, 1>>>(nodes, 3, 1, true, errors);
    ok &= has(0, 10, 3);
    // Lasts until the host sets the node.
    unsigned *to = words, given = value = 9;
    void* pointers[] = {&to, &given};
    cudaKernelNodeParams params{};
    params.func = reinterpret_cast<void*>(add);
    params.gridDim = params.blockDim = dim3(1);
    params.kernelParams = pointers;
    CHECK(cudaGraphExecKernelNodeSetParams(graph.executable, first, &params));
    return ok & has(9, 10);
  }
  bool staysChanged() {  // for the checks after a pause
    setAll<<<1, 1>>>(nodes, value = 6, 2, true, errors);
    value *= 2;
    return has(value, 10);
  }
  unsigned value = 1;
  int expected = cudaErrorInvalidValue;
  DeviceArray<unsigned> words{3};
  DeviceArray<int> errors{1};
  DeviceArray<Node> nodes{2};
  cudaGraphNode_t first, second;
  Graph graph;
};

// ---- A kernel changes the node behind it in its own graph, in each launch.
struct Within {
  Within() {
    cudaGraphNode_t node = addKernel<const Node*, unsigned*, int*>(graph.graph, {}, setNext, nodes, words, errors);
    nodes.upload({letUpdate(addKernel<unsigned*, unsigned>(graph.graph, {node}, add, words + 1, 0u))});
    graph.upload();
  }
  bool check() {
    words.upload({0, 0});
    for (int i = 0; i < 4; ++i) graph.run();
    return same("within", words.download(), {4, 1 + 2 + 3 + 4}) & same("of the node behind", errors.download(), {cudaSuccess});
  }
  DeviceArray<unsigned> words{2};
  DeviceArray<int> errors{std::vector<int>{notTried}};
  DeviceArray<Node> nodes{1};
  Graph graph;
};

// ---- A kernel changes a graph's node and launches the graph.
struct Launched {
  Launched() {
    nodes.upload({letUpdate(addKernel<unsigned*, unsigned>(graph.graph, {}, add, words, 0u))});
    graph.upload(cudaGraphInstantiateFlagDeviceLaunch);
    handles.upload({graph.executable});
    addKernel<const cudaGraphExec_t*, const Node*, unsigned, int*>(root.graph, {}, launch, handles, nodes, 11u, errors);
    root.upload();
  }
  bool check() {
    words.upload({0});
    for (int i = 0; i < 2; ++i) root.run();
    return same("launched", words.download(), {22}) & same("of the launch", errors.download(), {cudaSuccess, cudaSuccess});
  }
  DeviceArray<unsigned> words{1};
  DeviceArray<int> errors{std::vector<int>(2, notTried)};
  DeviceArray<Node> nodes{1};
  DeviceArray<cudaGraphExec_t> handles{1};
  Graph graph, root;
};

// ---- A captured launch whose attribute returns the node; one of its parameters is a structure.
struct Captured {
  Captured() {
    cudaStream_t stream;
    CHECK(cudaStreamCreate(&stream));
    cudaLaunchAttribute attribute{};
    attribute.id = cudaLaunchAttributeDeviceUpdatableKernelNode;
    attribute.val.deviceUpdatableKernelNode.deviceUpdatable = 1;
    cudaLaunchConfig_t config{};
    config.gridDim = config.blockDim = dim3(1);
    config.stream = stream;
    config.attrs = &attribute;
    config.numAttrs = 1;
    unsigned* to = words;
    CHECK(cudaGraphDestroy(graph.graph));
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    CHECK(cudaLaunchKernelEx(&config, addWide, to, Wide{'a', 2.5, {1, 2, 3, 4, 5}}));
    CHECK(cudaStreamEndCapture(stream, &graph.graph));
    nodes.upload({attribute.val.deviceUpdatableKernelNode.devNode});
    graph.upload();
    CHECK(cudaStreamDestroy(stream));
  }
  bool check(char letter) {
    words.upload({0});
    if (letter != 'a') setWide<<<1, 1>>>(nodes, Wide{letter, 3.0, {5, 4, 3, 2, 1}}, errors);
    graph.run();
    const unsigned expected = letter == 'a' ? 'a' + 2 + 5 : letter + 3 + 1;
    return same("captured", words.download(), {expected}) & same("of the captured", errors.download(), {cudaSuccess});
  }
  DeviceArray<unsigned> words{1};
  DeviceArray<int> errors{std::vector<int>{cudaSuccess}};
  DeviceArray<Node> nodes{1};
  Graph graph;
};

// ---- Invalid changes have no effect.
struct Wrong {
  Wrong() {
    node = addKernel<unsigned*, unsigned>(graph.graph, {}, add, words, 2u);
    nodes.upload({letUpdate(node)});
    graph.upload();
  }
  bool check() {
    DeviceArray<Wide> wide(std::vector<Wide>(1));
    words.upload({0});
    setWrong<<<1, 1>>>(nodes, wide, errors);
    graph.run();
    return same("unchanged", words.download(), {2}) & same("of what is wrong", errors.download(), std::vector<int>(4, cudaErrorInvalidValue)) &
           refusedByHost();
  }
  // A graph with such a node cannot be cloned, and has one executable graph at a time, which cannot be updated from another graph.
  bool refusedByHost() {
    cudaGraph_t copy = nullptr;
    cudaGraphExec_t other = nullptr;
    cudaGraphExecUpdateResultInfo info{};
    bool ok = EXPECT(cudaGraphClone(&copy, graph.graph) != cudaSuccess) & EXPECT(cudaGraphInstantiate(&other, graph.graph, 0) != cudaSuccess);
    ok &= EXPECT(cudaGraphExecUpdate(graph.executable, graph.graph, &info) != cudaSuccess);
    ok &= EXPECT_ERROR(cudaGraphDestroyNode(node), cudaErrorNotSupported);
    cudaKernelNodeAttrValue value{};
    ok &= EXPECT(cudaGraphKernelNodeSetAttribute(node, cudaLaunchAttributeDeviceUpdatableKernelNode, &value) != cudaSuccess);
    (void)cudaGetLastError();
    return ok;
  }
  DeviceArray<unsigned> words{1};
  DeviceArray<int> errors{std::vector<int>(4, notTried)};
  DeviceArray<Node> nodes{1};
  cudaGraphNode_t node;
  Graph graph;
};

}  // namespace

int main() {
  Changed changed;
  bool ok = changed.check();
  auto gone = std::make_unique<Within>();  // so that later handles are not in the order of their creation
  Within within;
  ok &= gone->check();
  gone.reset();
  Launched launched;
  Captured captured;
  Wrong wrong;
  ok &= within.check() & launched.check() & captured.check('a') & captured.check('k') & wrong.check() & changed.staysChanged();
  pausePoint();
  ok &= changed.has(changed.value, 10) & changed.check();
  ok &= within.check() & launched.check() & captured.check('k') & captured.check('z') & wrong.check();
  return verdict("updated-nodes", ok);
}
