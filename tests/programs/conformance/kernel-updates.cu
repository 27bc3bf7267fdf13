// Updates of executable graphs from another graph, and of single nodes: kernels' functions and attributes, and edges from kernels' ports.
#include <cooperative_groups.h>

#include "graph-updates.h"

__global__ void storeThree(int* to, int first, int second, int third) { *to = first * 100 + second * 10 + third; }
__global__ void countBlocks(int* to, int value) {
  if (blockIdx.x == 0 && threadIdx.x == 0) to[0] = static_cast<int>(gridDim.x), to[1] = value;
}
__global__ void sayCluster(int* to, int value) {
  if (blockIdx.x == 0 && threadIdx.x == 0) to[0] = static_cast<int>(cooperative_groups::this_cluster().num_blocks()), to[1] = value;
}
__global__ void __cluster_dims__(2, 1, 1) ownClusters(int* to, int value) {
  if (blockIdx.x == 0 && threadIdx.x == 0) to[0] = static_cast<int>(cooperative_groups::this_cluster().num_blocks()), to[1] = value;
}
__global__ void sumUp(int* to, int value) {
  atomicAdd(to, value);
  cooperative_groups::this_grid().sync();
  if (blockIdx.x == 0) to[1] = *to;
}
__global__ void launchAdd(int* to, int value) { add<<<1, 1>>>(to, value); }
__global__ void launchMultiply(int* to, int value) { multiply<<<1, 1>>>(to, value); }
__global__ void launchGraph(int* to, int value) {
  if (value == 0) cudaGraphLaunch(*reinterpret_cast<cudaGraphExec_t*>(to), cudaStreamGraphFireAndForget);
}
__global__ void changeNode(int* to, int value) {
  if (value == 0) cudaGraphKernelNodeSetEnabled(*reinterpret_cast<cudaGraphDeviceNode_t*>(to), false);
}

// ---- Kernels with other functions.
namespace {

const char* const text = R"(.version 7.5
.target sm_75
.address_size 64
.visible .entry storeTwice(.param .u64 to, .param .u32 value)
{
  .reg .b64 %rd<3>;
  .reg .b32 %r<3>;
  ld.param.u64 %rd1, [to];
  ld.param.u32 %r1, [value];
  cvta.to.global.u64 %rd2, %rd1;
  add.u32 %r2, %r1, %r1;
  st.global.u32 [%rd2], %r2;
  ret;
}
)";

CUfunction functionOf(void (*kernel)(int*, int)) {
  cudaFunction_t function = nullptr;
  CHECK(cudaGetFuncBySymbol(&function, reinterpret_cast<void*>(kernel)));
  return function;
}
CUDA_KERNEL_NODE_PARAMS driversNode(CUfunction function, void** arguments, unsigned blocks = 1) {
  CUDA_KERNEL_NODE_PARAMS made{};
  made.func = function;
  made.gridDimX = blocks;
  made.gridDimY = made.gridDimZ = made.blockDimX = made.blockDimY = made.blockDimZ = 1;
  made.kernelParams = arguments;
  return made;
}
cudaGraph_t kernelGraph(CUfunction function, int value, const char* name, cudaGraphNode_t* made = nullptr, bool cooperative = false) {
  cudaGraph_t to = newGraph();
  void* arguments[] = {&words, &value};
  auto parameters = driversNode(function, arguments);
  cudaGraphNode_t of = nullptr;
  CALL(cuGraphAddKernelNode, &of, to, nullptr, 0, &parameters);
  named(name, of);
  if (made != nullptr) *made = of;
  cudaKernelNodeAttrValue attribute{};
  attribute.cooperative = 1;
  if (cooperative) CHECK(cudaGraphKernelNodeSetAttribute(of, cudaLaunchAttributeCooperative, &attribute));
  return to;
}

// Changes the function, with an update from another graph and with the node's setter.
void changeFunction(const char* what, CUfunction first, CUfunction second, bool runsIt = true) {
  cudaGraphNode_t of = nullptr;
  cudaGraph_t now = kernelGraph(first, 3, "first", &of), wanted = kernelGraph(second, 4, "second");
  cudaGraphExec_t made = nullptr;
  if (!isDone(what, cudaGraphInstantiate(&made, now, 0))) return;
  updateBy(what, made, wanted);
  if (runsIt) showWords(what, made, {0, 1});
  updateBy("back", made, now);
  int value = 5;
  void* arguments[] = {&words, &value};
  auto parameters = driversNode(second, arguments);
  say((std::string("set: ") + what).c_str(), DRIVER(cuGraphExecKernelNodeSetParams)(made, of, &parameters));
  if (runsIt) showWords(what, made, {0, 1});
  CHECK(cudaGraphExecDestroy(made));
}

}  // namespace

SECTION(functions) {
  setUp();
  CUmodule module;
  CUfunction other;
  CALL(cuModuleLoadData, &module, text);
  CALL(cuModuleGetFunction, &other, module, "storeTwice");
  changeFunction("of the same module", functionOf(store), functionOf(countBlocks));
  changeFunction("of another module", functionOf(store), other);
  changeFunction("from another module", other, functionOf(store));
}

SECTION(functionsOfContexts) {
  setUp();
  CUcontext own, second;
  CUmodule module;
  CUfunction other;
  CALL(cuCtxGetCurrent, &own);
  CALL(cuCtxCreate, &second, nullptr, 0, 0);
  CALL(cuModuleLoadData, &module, text);
  CALL(cuModuleGetFunction, &other, module, "storeTwice");
  CALL(cuCtxSetCurrent, own);
  changeFunction("of another context", functionOf(store), other, false);
}

SECTION(functionsThatLaunch) {
  setUp();
  changeFunction("to one that launches", functionOf(store), functionOf(launchAdd));
  changeFunction("from one that launches", functionOf(launchAdd), functionOf(store));
  changeFunction("between such", functionOf(launchAdd), functionOf(launchMultiply));
}
SECTION(functionsThatLaunchGraphs) {
  setUp();
  changeFunction("to one that launches graphs", functionOf(store), functionOf(launchGraph));
  changeFunction("from one that launches graphs", functionOf(launchGraph), functionOf(store));
}
SECTION(functionsThatChangeNodes) {
  setUp();
  changeFunction("to one that changes nodes", functionOf(store), functionOf(changeNode));
  changeFunction("from one that changes nodes", functionOf(changeNode), functionOf(store));
}

// Beside a node that already launches kernels.
SECTION(besideOneThatLaunches) {
  setUp();
  cudaGraph_t first = newGraph(), wanted = newGraph();
  auto one = named("first", addKernel(first, {}, launchAdd, words, 1));
  named("second", addKernel(first, {one}, store, words + 1, 2));
  auto other = named("other first", addKernel(wanted, {}, launchAdd, words, 3));
  named("other second", addKernel(wanted, {other}, launchAdd, words + 1, 4));
  CHECK(cudaGraphInstantiate(&executable, first, 0));
  updateBy("a second one launches", executable, wanted);
  showWords("then", executable, {0, 1});
}

SECTION(functionsOfOtherParameters) {
  setUp();
  cudaGraph_t wanted = newGraph();
  cudaGraphNode_t of = addKernel(graph, {}, store, words, 1);
  named("wider", addKernel(wanted, {}, storeThree, words, 1, 2, 3));
  CHECK(cudaGraphInstantiate(&executable, graph, 0));
  updateBy("more parameters", executable, wanted);
  showWords("then", executable, {0});
  int one = 4, two = 5, three = 6;
  void* arguments[] = {&words, &one, &two, &three};
  cudaKernelNodeParams parameters = kernelNode(nullptr, arguments);
  parameters.func = reinterpret_cast<void*>(storeThree);
  TRY(cudaGraphExecKernelNodeSetParams(executable, of, &parameters));
  showWords("then", executable, {0});
  parameters = kernelNode(countBlocks, arguments);
  parameters.gridDim = dim3(7);
  parameters.blockDim = dim3(3, 2);
  parameters.sharedMemBytes = 1024;
  TRY(cudaGraphExecKernelNodeSetParams(executable, of, &parameters));
  showWords("then", executable, {0, 1});
  updateBy("back", executable, graph);
  showWords("then", executable, {0, 1});
}

SECTION(cooperation) {
  setUp();
  auto test = [](const char* what, CUfunction first, bool isFirst, CUfunction second, bool isSecond) {
    cudaGraphNode_t of = nullptr;
    cudaGraph_t now = kernelGraph(first, 3, "first", &of, isFirst), wanted = kernelGraph(second, 4, "second", nullptr, isSecond);
    cudaGraphExec_t made;
    CHECK(cudaGraphInstantiate(&made, now, 0));
    updateBy(what, made, wanted);
    showWords(what, made, {0, 1});
    int value = 5;
    void* arguments[] = {&words, &value};
    auto parameters = driversNode(second, arguments);
    say(what, DRIVER(cuGraphExecKernelNodeSetParams)(made, of, &parameters));
    if (isFirst || second != functionOf(sumUp)) showWords(what, made, {0, 1});
  };
  test("cooperative to cooperative", functionOf(sumUp), true, functionOf(sumUp), true);
  test("cooperative to none", functionOf(sumUp), true, functionOf(store), false);
  test("none to cooperative", functionOf(store), false, functionOf(sumUp), true);
  test("cooperative to another cooperative", functionOf(sumUp), true, functionOf(store), true);
}

// ---- Kernel attributes: absent, present, with another value.
namespace {

struct Attribute {
  cudaLaunchAttributeID id;
  cudaLaunchAttributeValue value;
};
using Attributes = std::vector<Attribute>;
template <typename Set>
Attributes with(cudaLaunchAttributeID id, Set&& set) {
  cudaLaunchAttributeValue value{};
  set(value);
  return {{id, value}};
}

cudaGraph_t attributeGraph(const Attributes& attributes, const char* name, int value) {
  cudaGraph_t to = newGraph();
  void* arguments[] = {&words, &value};
  cudaKernelNodeParams parameters = kernelNode(sayCluster, arguments);
  parameters.gridDim = dim3(8);
  cudaGraphNode_t of;
  CHECK(cudaGraphAddKernelNode(&of, to, nullptr, 0, &parameters));
  for (auto& each : attributes) isDone("its attribute", cudaGraphKernelNodeSetAttribute(of, each.id, &each.value));
  return named(name, of), to;
}
void changeAttributes(const char* what, const Attributes& first, const Attributes& second, unsigned long long flags = 0) {
  cudaGraph_t now = attributeGraph(first, "first", 1), wanted = attributeGraph(second, "second", 2);
  cudaGraphExec_t made = nullptr;
  if (!isDone("instantiation", cudaGraphInstantiate(&made, now, flags))) return;
  updateBy(what, made, wanted);
  showWords(what, made, {0, 1});
  updateBy("back", made, now);
  // Which attributes remain after the node is set.
  cudaGraphNode_t of;
  size_t many = 1;
  CHECK(cudaGraphGetNodes(now, &of, &many));
  int value = 3;
  void* arguments[] = {&words, &value};
  cudaKernelNodeParams parameters = kernelNode(sayCluster, arguments);
  parameters.gridDim = dim3(8);
  updateBy("again", made, wanted);
  TRY(cudaGraphExecKernelNodeSetParams(made, of, &parameters));
  showWords(what, made, {0, 1});
  CHECK(cudaGraphExecDestroy(made));
}
void changeAttribute(const Attributes& one, const Attributes& two, unsigned long long flags = 0) {
  setUp();
  changeAttributes("without to with", {}, one, flags);
  changeAttributes("with to without", one, {}, flags);
  changeAttributes("another value", one, two, flags);
}

Attributes cluster(unsigned x) {
  return with(cudaLaunchAttributeClusterDimension, [&](auto& value) { value.clusterDim.x = x, value.clusterDim.y = value.clusterDim.z = 1; });
}
Attributes preferredCluster(unsigned x, unsigned smallest) {
  Attributes all = cluster(smallest);
  all.push_back(with(cudaLaunchAttributePreferredClusterDimension, [&](auto& value) {
    value.preferredClusterDim.x = x, value.preferredClusterDim.y = value.preferredClusterDim.z = 1;
  })[0]);
  return all;
}
Attributes priority(int priority) {
  return with(cudaLaunchAttributePriority, [&](auto& value) { value.priority = priority; });
}
Attributes window(size_t bytes) {
  return with(cudaLaunchAttributeAccessPolicyWindow, [&](auto& value) {
    value.accessPolicyWindow.base_ptr = words;
    value.accessPolicyWindow.num_bytes = bytes;
    value.accessPolicyWindow.hitRatio = 0.5f;
    value.accessPolicyWindow.hitProp = cudaAccessPropertyPersisting;
    value.accessPolicyWindow.missProp = cudaAccessPropertyStreaming;
  });
}

}  // namespace

SECTION(clusters) { changeAttribute(cluster(2), cluster(4)); }
SECTION(preferredClusters) {
  setUp();
  changeAttributes("without to with", cluster(2), preferredCluster(4, 2));
  changeAttributes("another", preferredCluster(4, 2), preferredCluster(8, 2));
}
SECTION(schedulingPolicies) {
  auto policy = [](auto wanted) {
    return with(cudaLaunchAttributeClusterSchedulingPolicyPreference, [&](auto& value) { value.clusterSchedulingPolicyPreference = wanted; });
  };
  changeAttribute(policy(cudaClusterSchedulingPolicySpread), policy(cudaClusterSchedulingPolicyLoadBalancing));
}
SECTION(priorities) { changeAttribute(priority(-1), priority(-2)); }
SECTION(prioritiesOfNodes) { changeAttribute(priority(-1), priority(-2), cudaGraphInstantiateFlagUseNodePriority); }
SECTION(windows) {
  setUp();
  changeAttribute(window(64), window(128));
}
SECTION(domains) {
  auto domain = [](auto wanted) { return with(cudaLaunchAttributeMemSyncDomain, [&](auto& value) { value.memSyncDomain = wanted; }); };
  changeAttribute(domain(cudaLaunchMemSyncDomainRemote), domain(cudaLaunchMemSyncDomainDefault));
}
SECTION(domainMaps) {
  auto map = [](unsigned char remote) {
    return with(cudaLaunchAttributeMemSyncDomainMap, [&](auto& value) { value.memSyncDomainMap = {0, remote}; });
  };
  changeAttribute(map(1), map(0));
}
SECTION(carveouts) {
  auto carveout = [](unsigned percent) {
    return with(cudaLaunchAttributePreferredSharedMemoryCarveout, [&](auto& value) { value.sharedMemCarveout = percent; });
  };
  changeAttribute(carveout(50), carveout(100));
}
SECTION(scheduling) {
  auto centric = [](unsigned wanted) {
    return with(cudaLaunchAttributeNvlinkUtilCentricScheduling, [&](auto& value) { value.nvlinkUtilCentricScheduling = wanted; });
  };
  changeAttribute(centric(1), centric(0));
}
SECTION(severalAttributes) {
  setUp();
  Attributes one = cluster(2), two = window(64);
  one.push_back(window(64)[0]);
  two.push_back(cluster(2)[0]);
  changeAttributes("in another order", one, two);
  Attributes none = cluster(0);
  changeAttributes("without to the default", {}, none);
}

// ---- Clusters that do not divide the grid, or are too large.
namespace {

// A node's parameters, and the arguments that they point to.
struct ClusterNode {
  explicit ClusterNode(unsigned blocks, void (*kernel)(int*, int) = sayCluster) : parameters(kernelNode(kernel, arguments)) {
    parameters.gridDim = dim3(blocks);
  }
  ClusterNode(const ClusterNode&) = delete;
  ClusterNode& operator=(const ClusterNode&) = delete;

  int value = 1;
  void* arguments[2] = {&words, &value};
  cudaKernelNodeParams parameters;
};

cudaError_t setCluster(cudaGraphNode_t of, unsigned x) {
  return cudaGraphKernelNodeSetAttribute(of, cudaLaunchAttributeClusterDimension, &cluster(x)[0].value);
}

}  // namespace

SECTION(clustersOfNodes) {
  setUp();
  struct { unsigned blocks, cluster; } cases[] = {{3, 2}, {4, 3}, {1, 2}, {4, 2}, {4, 1}, {16, 16}, {32, 32}, {8, 8}};
  for (auto [blocks, size] : cases) {
    const std::string what = std::to_string(blocks) + " blocks, clusters of " + std::to_string(size);
    cudaGraph_t of = newGraph();
    ClusterNode wanted(blocks);
    CHECK(cudaGraphAddKernelNode(&node, of, nullptr, 0, &wanted.parameters));
    tried(what.c_str(), setCluster(node, size));
    cudaKernelNodeAttrValue value{};
    CHECK(cudaGraphKernelNodeGetAttribute(node, cudaLaunchAttributeClusterDimension, &value));
    VALUE(value.clusterDim.x);
    CHECK(cudaGraphInstantiate(&executable, of, 0));
    showWords("then", executable, {0});
  }
}

SECTION(gridsOfNodesWithClusters) {
  setUp();
  ClusterNode first(4), wanted(3);
  CHECK(cudaGraphAddKernelNode(&node, graph, nullptr, 0, &first.parameters));
  CHECK(setCluster(node, 2));
  CHECK(cudaGraphInstantiate(&executable, graph, 0));
  tried("in the executable graph", cudaGraphExecKernelNodeSetParams(executable, node, &wanted.parameters));
  showWords("then", executable, {0});
  tried("in the graph", cudaGraphKernelNodeSetParams(node, &wanted.parameters));
  updateBy("an update", executable, graph);
  showWords("then", executable, {0});
}

SECTION(kernelsWithClusters) {
  setUp();
  ClusterNode first(4, ownClusters), wanted(3, ownClusters);
  tried("another grid", cudaGraphAddKernelNode(&node, graph, nullptr, 0, &wanted.parameters));
  tried("one that they divide", cudaGraphAddKernelNode(&node, graph, nullptr, 0, &first.parameters));
  tried("other clusters", setCluster(node, 4));
  CHECK(cudaGraphInstantiate(&executable, graph, 0));
  showWords("then", executable, {0});
  tried("in the executable graph", cudaGraphExecKernelNodeSetParams(executable, node, &wanted.parameters));
  showWords("then", executable, {0});
}

SECTION(capturedClusters) {
  setUp();
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  Attributes attributes = cluster(2);
  cudaLaunchAttribute attribute{};
  attribute.id = attributes[0].id;
  attribute.val = attributes[0].value;
  cudaLaunchConfig_t launch{};
  launch.gridDim = dim3(3);
  launch.blockDim = dim3(1);
  launch.stream = stream;
  launch.attrs = &attribute;
  launch.numAttrs = 1;
  tried("a launch", cudaLaunchKernelEx(&launch, sayCluster, words, 1));
  tried("the end", cudaStreamEndCapture(stream, &graph));
}

SECTION(attributesOfChildren) {
  setUp();
  cudaGraph_t now = newGraph(), wanted = newGraph();
  cudaGraphNode_t one;
  CHECK(cudaGraphAddChildGraphNode(&one, now, nullptr, 0, attributeGraph(cluster(2), "first", 1)));
  named("first", one);
  CHECK(cudaGraphAddChildGraphNode(&one, wanted, nullptr, 0, attributeGraph(cluster(4), "second", 2)));
  named("second", one);
  CHECK(cudaGraphInstantiate(&executable, now, 0));
  updateBy("another", executable, wanted);
  showWords("then", executable, {0, 1});
}

// ---- Edges with ports.
SECTION(ports) {
  setUp();
  cudaGraphEdgeData programmatic{}, ordered{};
  programmatic.from_port = cudaGraphKernelNodePortProgrammatic;
  ordered.from_port = cudaGraphKernelNodePortLaunchCompletion;
  programmatic.type = ordered.type = cudaGraphDependencyTypeProgrammatic;
  auto pair = [](const cudaGraphEdgeData* data, const char* first, const char* second) {
    cudaGraph_t made = newGraph();
    auto one = named(first, addKernel(made, {}, store, words, 1)), two = named(second, addKernel(made, {}, store, words + 1, 2));
    CHECK(cudaGraphAddDependencies(made, &one, &two, data, 1));
    return made;
  };
  CHECK(cudaGraphInstantiate(&executable, pair(nullptr, "first", "second"), 0));
  updateBy("none to a port", executable, pair(&programmatic, "other first", "other second"));
  CHECK(cudaGraphInstantiate(&executable, pair(&programmatic, "first", "second"), 0));
  updateBy("the same", executable, pair(&programmatic, "other first", "other second"));
  updateBy("another", executable, pair(&ordered, "other first", "other second"));
  updateBy("a port to none", executable, pair(nullptr, "other first", "other second"));
  showWords("then", executable, {0, 1});
}

SECTION(errorsInside) {
  setUp();
  cudaGraph_t now = newGraph(), wanted = newGraph();
  cudaGraphNode_t one;
  CHECK(cudaGraphAddChildGraphNode(&one, now, nullptr, 0, kernelGraph(functionOf(store), 1, "first")));
  CHECK(cudaGraphAddChildGraphNode(&one, wanted, nullptr, 0, kernelGraph(functionOf(launchAdd), 2, "second")));
  nameInner(named("child", one));
  CHECK(cudaGraphInstantiate(&executable, now, 0));
  updateBy("a function", executable, wanted);
  // Type, parameters, attributes and function change at once.
  auto all = [](cudaGraph_t to, bool isOther, int swap) {
    cudaMemsetParams fill = fillOf(others, 1, 4, 2, isOther ? 3 : 2, 32);
    cudaGraphNode_t parts[3];
    auto add = [&](int which) {
      if (which == 0) {
        CHECK(cudaGraphAddMemsetNode(&parts[0], to, nullptr, 0, &fill));
        names[parts[0]] = "parameters";
      } else if (which == 1) {
        parts[1] = addKernel(to, {}, store, words, 1);
        cudaKernelNodeAttrValue value{};
        value.cooperative = isOther;
        CHECK(cudaGraphKernelNodeSetAttribute(parts[1], cudaLaunchAttributeCooperative, &value));
        names[parts[1]] = "attribute";
      } else {
        parts[2] = addKernel(to, {}, isOther ? launchAdd : store, words, 1);
        names[parts[2]] = "function";
      }
    };
    for (int i = 0; i < 3; ++i) add((i + swap) % 3);
    CHECK(cudaGraphAddDependencies(to, &parts[(0 + swap) % 3], &parts[(1 + swap) % 3], nullptr, 1));
  };
  for (int swap : {0, 1, 2}) {
    cudaGraph_t first = newGraph(), second = newGraph();
    all(first, false, swap), all(second, true, swap);
    cudaGraphExec_t made;
    CHECK(cudaGraphInstantiate(&made, first, 0));
    updateBy(("order " + std::to_string(swap)).c_str(), made, second);
  }
}
