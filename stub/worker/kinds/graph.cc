// Executable graphs: one frame for each node, then the driver instantiates the graph (docs/graphs.md). The same method, and so the same
// handler, adds a node and sets it later.
#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "cuda-handlers.h"
#include "stub/worker/copy.h"
#include "stub/worker/device-graphs.h"
#include "stub/worker/graph-launch.h"
#include "stub/worker/graph-restore.h"
#include "stub/worker/kinds/function.h"
#include "stub/worker/kinds/graphs.h"
#include "stub/worker/kinds/kind.h"
#include "stub/worker/kinds/launch-attributes.h"

namespace vgpu::stub {

namespace {

// `on` may be any GPU's: the frames of a graph's nodes are in the rings of the nodes' devices, and are executed one after the other.
KnownGraph& graphOf(Execution& on, uint64_t handle) {
  return *fromWire<KnownGraph*>(on.handles.get(api::Kind::GRAPH_EXEC, handle));
}

// Executes a node's frame. `add(node, graph, before, count)` and `set(executable, node)` call the driver. If a node cannot be added, the
// error is kept as the result of graphInstantiate, for which the program waits.
// All pinned memory is registered with the driver before a node names it. Otherwise the driver would treat it as pageable memory and read
// it when the graph is launched, before the program has written it.
template <typename Frame, typename Add, typename Set>
CUresult execute(Execution& on, const Frame& p, Add&& add, Set&& set) {
  KnownGraph& graph = graphOf(on, p.getGraph());
  if (graph.executable != nullptr) {
    if (p.getNode() >= graph.nodes.size()) return CUDA_ERROR_INVALID_VALUE;
    KnownGraphNode& node = graph.nodes[p.getNode()];
    if (CUresult error = on.session.hostLeases.registerAll()) return error;
    if (CUresult error = set(graph.executable, node.node)) return error;
    return noteSet(on, graph, node);
  }
  if (graph.failure != CUDA_SUCCESS || (graph.failure = on.session.hostLeases.registerAll()) != CUDA_SUCCESS) return CUDA_SUCCESS;
  auto before = std::exchange(graph.beforeNext, {});
  auto numbers = p.getBefore();
  KnownGraphNode made{.device = on.device()};
  for (size_t i = 0; i < numbers.size() && graph.failure == CUDA_SUCCESS; ++i) {
    if (numbers[i] >= graph.nodes.size()) graph.failure = CUDA_ERROR_INVALID_VALUE;
    else before.push_back(graph.nodes[numbers[i]].node);
  }
  if (p.getNode() != graph.nodes.size()) graph.failure = CUDA_ERROR_INVALID_VALUE;
  if (graph.failure == CUDA_SUCCESS) graph.failure = add(&made.node, graph.body, before.data(), before.size());
  if (graph.failure != CUDA_SUCCESS && addAsSet(on, p.getGraph(), p.getNode(), graph, before)) return CUDA_SUCCESS;
  if (graph.failure == CUDA_SUCCESS) graph.nodes.push_back(std::move(made));
  return CUDA_SUCCESS;
}

}  // namespace

CUresult graphBegin(Execution& on, const api::FrameReader<api::Cuda::GraphBeginParams>& p, Reply&) {
  KnownGraph made;
  if (CUresult error = on.driver.cuGraphCreate(&made.graph, 0)) return error;
  made.body = made.graph;
  auto place = on.kept.of<KnownGraphs>().emplace(p.getGraph(), std::move(made)).first;
  on.handles.add(api::Kind::GRAPH_EXEC, p.getGraph(), toWire(&place->second));
  return CUDA_SUCCESS;
}

constexpr auto refuseFunction = [](auto&&...) { return CUDA_ERROR_INVALID_HANDLE; };

CUresult graphKernel(Execution& on, const api::FrameReader<api::Cuda::GraphKernelParams>& p, Reply&) {
  auto found = on.functions.find(p.getFunction());
  KnownGraph& graph = graphOf(on, p.getGraph());
  if (found == on.functions.end()) return execute(on, p, placeholderOf(on, p, graph), refuseFunction);
  auto parameters = p.getParameters();
  LaunchAttributes attributes(on, p.getAttributes(), p.getCooperative());
  if (CUresult bad = attributes.check()) return bad;
  if (parameters.size() < found->second.parameterBytes) return CUDA_ERROR_INVALID_VALUE;
  std::vector<void*> pointers;  // for a node with its parameters in one buffer the driver takes no attributes
  for (uint32_t offset : found->second.parameterOffsets) pointers.push_back(const_cast<kj::byte*>(parameters.begin() + offset));
  CUDA_KERNEL_NODE_PARAMS kernel{};
  kernel.func = found->second.real;
  kernel.gridDimX = p.getGridX(), kernel.gridDimY = p.getGridY(), kernel.gridDimZ = p.getGridZ();
  kernel.blockDimX = p.getBlockX(), kernel.blockDimY = p.getBlockY(), kernel.blockDimZ = p.getBlockZ();
  kernel.sharedMemBytes = p.getSharedBytes();
  kernel.kernelParams = pointers.data();
  const KernelNode described{kernel, attributes.get()};
  auto add = [&](CUgraphNode* node, CUgraph to, const CUgraphNode* before, size_t count) {
    const NodePlace place{to, before, count};
    if (!described.isDeviceUpdatable()) return addKernelNode(on, place, described, *node);
    if (p.getHolder() != 0) return moveDeviceNode(on, p.getHolder(), graph, place, described, *node);
    graph.held.emplace(described, parameters, found->second.parameterOffsets);
    graph.address = deviceHandles(on).expectedOf(p.getGraph());
    return deviceHandles(on).add(on, place, described, *node, graph.address);
  };
  if (graph.function == 0) graph.function = p.getFunction();
  noteNeed(on, found->second, p, attributes.get());
  return execute(on, p, add, [&](CUgraphExec executable, CUgraphNode node) {
    return on.driver.cuGraphExecKernelNodeSetParams_v2(executable, node, &kernel);
  });
}

CUresult graphCopy(Execution& on, const CopyNodeFrame& p, Reply&) {
  CUDA_MEMCPY3D copy{};
  CUresult bad = describeCopy(on, p, copy);
  CUcontext context = on.gpu.context.get();
  auto add = [&](CUgraphNode* node, CUgraph graph, const CUgraphNode* before, size_t count) {
    return bad != CUDA_SUCCESS ? bad : on.driver.cuGraphAddMemcpyNode(node, graph, before, count, &copy, context);
  };
  return execute(on, p, add, [&](CUgraphExec executable, CUgraphNode node) {
    return bad != CUDA_SUCCESS ? bad : on.driver.cuGraphExecMemcpyNodeSetParams(executable, node, &copy, context);
  });
}

CUresult graphFill(Execution& on, const api::FrameReader<api::Cuda::GraphFillParams>& p, Reply&) {
  CUDA_MEMSET_NODE_PARAMS fill{p.getDestination(), p.getPitch(), p.getValue(), p.getElementBytes(), p.getWidth(), p.getHeight()};
  CUresult bad = checkFill(on, p.getDestination(), p.getPitch(), p.getElementBytes(), p.getWidth(), p.getHeight());
  auto add = [&](CUgraphNode* node, CUgraph graph, const CUgraphNode* before, size_t count) {
    return bad != CUDA_SUCCESS ? bad : on.driver.cuGraphAddMemsetNode(node, graph, before, count, &fill, on.gpu.context.get());
  };
  return execute(on, p, add, [&](CUgraphExec executable, CUgraphNode node) {
    return bad != CUDA_SUCCESS ? bad : on.driver.cuGraphExecMemsetNodeSetParams(executable, node, &fill, on.gpu.context.get());
  });
}

CUresult graphEvent(Execution& on, const api::FrameReader<api::Cuda::GraphEventParams>& p, Reply&) {
  auto event = fromWire<CUevent>(on.handles.get(api::Kind::EVENT, p.getEvent()));
  auto addNode = p.getWaits() ? on.driver.cuGraphAddEventWaitNode : on.driver.cuGraphAddEventRecordNode;
  auto setNode = p.getWaits() ? on.driver.cuGraphExecEventWaitNodeSetEvent : on.driver.cuGraphExecEventRecordNodeSetEvent;
  auto add = [&](CUgraphNode* node, CUgraph graph, const CUgraphNode* before, size_t count) {
    return addNode(node, graph, before, count, event);
  };
  auto set = [&](CUgraphExec executable, CUgraphNode node) { return setNode(executable, node, event); };
  CUresult result = execute(on, p, add, set);
  KnownGraph& graph = graphOf(on, p.getGraph());
  if (result != CUDA_SUCCESS || p.getWaits() || p.getNode() >= graph.nodes.size()) return result;
  if (graph.executable == nullptr) graph.records.push_back(p.getNode());
  graph.nodes[p.getNode()].event = p.getEvent();
  return result;
}

CUresult graphCaptured(Execution& on, const api::FrameReader<api::Cuda::GraphCapturedParams>& p, Reply&) {
  auto child = fromWire<CUgraph>(on.handles.get(api::Kind::CAPTURED_CALL, p.getCall()));
  auto add = [&](CUgraphNode* node, CUgraph graph, const CUgraphNode* before, size_t count) {
    return child == nullptr ? CUDA_ERROR_INVALID_VALUE : on.driver.cuGraphAddChildGraphNode(node, graph, before, count, child);
  };
  return execute(on, p, add, [](CUgraphExec, CUgraphNode) { return CUDA_ERROR_INVALID_VALUE; });
}

namespace {

// Operations of the program's own: 64 or 32 bits of the session's memory each, or a barrier.
bool areOwn(Execution& on, std::span<const CUstreamBatchMemOpParams> operations) {
  return std::ranges::all_of(operations, [&](auto& one) {
    bool isWide = one.operation == CU_STREAM_MEM_OP_WRITE_VALUE_64 || one.operation == CU_STREAM_MEM_OP_WAIT_VALUE_64;
    bool isNarrow = one.operation == CU_STREAM_MEM_OP_WRITE_VALUE_32 || one.operation == CU_STREAM_MEM_OP_WAIT_VALUE_32;
    bool hasWord = (isWide || isNarrow) && on.ownsMemory(one.writeValue.address, isWide ? 8 : 4);
    return hasWord || one.operation == CU_STREAM_MEM_OP_BARRIER;
  });
}

CUresult addOwn(Execution& on, const api::FrameReader<api::Cuda::GraphMemOpsParams>& p) {
  KnownGraph& graph = graphOf(on, p.getGraph());
  if (graph.executable != nullptr || p.getOurs() > 2 || p.getLine() >= completionWordCount) return CUDA_ERROR_INVALID_VALUE;
  OwnWords own{p.getLine(), p.getOurs() == 2};
  OwnOperations first(on, own, 0);
  auto add = [&](CUgraphNode* node, CUgraph to, const CUgraphNode* before, size_t count) {
    return on.driver.cuGraphAddBatchMemOpNode(node, to, before, count, &first.node);
  };
  size_t had = graph.nodes.size();
  CUresult result = execute(on, p, add, [](CUgraphExec, CUgraphNode) { return CUDA_ERROR_INVALID_VALUE; });
  if (graph.nodes.size() == had) return result;
  graph.nodes.back().own = own;
  graph.own.push_back(static_cast<uint32_t>(had));
  return result;
}

}  // namespace

CUresult graphMemOps(Execution& on, const api::FrameReader<api::Cuda::GraphMemOpsParams>& p, Reply&) {
  if (p.getOurs() != 0) return addOwn(on, p);
  auto bytes = p.getOperations();
  std::vector<CUstreamBatchMemOpParams> operations(bytes.size() / sizeof(CUstreamBatchMemOpParams));
  if (!operations.empty()) std::memcpy(operations.data(), bytes.begin(), operations.size() * sizeof operations[0]);
  CUresult bad = areOwn(on, operations) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  CUDA_BATCH_MEM_OP_NODE_PARAMS words{on.gpu.context.get(), static_cast<unsigned>(operations.size()), operations.data(), 0};
  auto add = [&](CUgraphNode* node, CUgraph graph, const CUgraphNode* before, size_t count) {
    if (operations.empty()) return on.driver.cuGraphAddEmptyNode(node, graph, before, count);
    return bad != CUDA_SUCCESS ? bad : on.driver.cuGraphAddBatchMemOpNode(node, graph, before, count, &words);
  };
  return execute(on, p, add, [&](CUgraphExec executable, CUgraphNode node) {
    return bad != CUDA_SUCCESS || operations.empty() ? bad : on.driver.cuGraphExecBatchMemOpNodeSetParams(executable, node, &words);
  });
}

CUresult graphEdge(Execution& on, const api::FrameReader<api::Cuda::GraphEdgeParams>& p, Reply&) {
  KnownGraph& graph = graphOf(on, p.getGraph());
  if (graph.failure != CUDA_SUCCESS) return CUDA_SUCCESS;
  const bool areThere = p.getFrom() < graph.nodes.size() && p.getTo() < graph.nodes.size();
  if (graph.executable != nullptr || !areThere || p.getPort() > UINT8_MAX || p.getType() > UINT8_MAX) return CUDA_ERROR_INVALID_VALUE;
  CUgraphEdgeData data{};
  data.from_port = static_cast<unsigned char>(p.getPort());
  data.type = static_cast<unsigned char>(p.getType());
  graph.failure =
      on.driver.cuGraphAddDependencies_v2(graph.body, &graph.nodes[p.getFrom()].node, &graph.nodes[p.getTo()].node, &data, 1);
  return CUDA_SUCCESS;
}

// The program's kernels contain the handle's number. A driver that numbers handles differently cannot make such a graph.
CUresult graphCondition(Execution& on, const api::FrameReader<api::Cuda::GraphConditionParams>& p, Reply&) {
  KnownGraph& graph = graphOf(on, p.getGraph());
  if (graph.executable != nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUgraphConditionalHandle made = 0;
  CUcontext context = on.gpu.context.get();
  if (graph.failure == CUDA_SUCCESS)
    graph.failure = on.driver.cuGraphConditionalHandleCreate(&made, graph.graph, context, p.getValue(), p.getFlags());
  if (graph.failure == CUDA_SUCCESS && made != p.getCondition()) graph.failure = CUDA_ERROR_NOT_SUPPORTED;
  return CUDA_SUCCESS;
}

CUresult graphConditional(Execution& on, const api::FrameReader<api::Cuda::GraphConditionalParams>& p, Reply&) {
  CUgraphNodeParams params{};
  params.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
  const auto type = static_cast<CUgraphConditionalNodeType>(p.getType());
  params.conditional = {p.getCondition(), type, p.getBodies(), nullptr, on.gpu.context.get()};
  auto add = [&](CUgraphNode* node, CUgraph graph, const CUgraphNode* before, size_t count) {
    return on.driver.cuGraphAddNode_v2(node, graph, before, nullptr, count, &params);
  };
  KnownGraph& graph = graphOf(on, p.getGraph());
  const size_t had = graph.nodes.size();
  CUresult result = execute(on, p, add, [](CUgraphExec, CUgraphNode) { return CUDA_ERROR_INVALID_VALUE; });
  if (graph.nodes.size() != had)
    graph.nodes.back().bodies.assign(params.conditional.phGraph_out, params.conditional.phGraph_out + p.getBodies());
  return result;
}

CUresult graphBody(Execution& on, const api::FrameReader<api::Cuda::GraphBodyParams>& p, Reply&) {
  KnownGraph& graph = graphOf(on, p.getGraph());
  if (graph.failure != CUDA_SUCCESS) return CUDA_SUCCESS;
  if (p.getNode() == UINT32_MAX) return graph.body = graph.graph, CUDA_SUCCESS;
  if (p.getNode() >= graph.nodes.size() || p.getBody() >= graph.nodes[p.getNode()].bodies.size()) return CUDA_ERROR_INVALID_VALUE;
  graph.body = graph.nodes[p.getNode()].bodies[p.getBody()];
  return CUDA_SUCCESS;
}

CUresult graphEnable(Execution& on, const api::FrameReader<api::Cuda::GraphEnableParams>& p, Reply&) {
  KnownGraph& graph = graphOf(on, p.getGraph());
  if (graph.executable == nullptr || p.getNode() >= graph.nodes.size()) return CUDA_ERROR_INVALID_VALUE;
  KnownGraphNode& node = graph.nodes[p.getNode()];
  if (CUresult error = on.driver.cuGraphNodeSetEnabled(graph.executable, node.node, p.getEnabled())) return error;
  return noteSet(on, graph, node);
}

// An unusable graph is no error of the call: when a recipe is executed, the graph may name memory that has ended, and so may its settings.
// It cannot be launched then, and could not before the suspend.
CUresult graphInstantiate(Execution& on, const api::FrameReader<api::Cuda::GraphInstantiateParams>& p, Reply& reply) {
  KnownGraph& graph = graphOf(on, p.getGraph());
  CUresult result = graph.failure;
  CUDA_GRAPH_INSTANTIATE_PARAMS params{.flags = p.getFlags() & CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY};
  params.result_out = CUDA_GRAPH_INSTANTIATE_ERROR;
  if (result == CUDA_SUCCESS && p.getHolds() && !graph.held) result = CUDA_ERROR_INVALID_VALUE;
  if (result == CUDA_SUCCESS && !p.getHolds()) result = instantiate(on, graph, p.getGraph(), p.getFlags(), params);
  if (result == CUDA_ERROR_OUT_OF_MEMORY && graph.failure == CUDA_SUCCESS && !on.gpu.folded.isEmpty()) return result;  // run again
  auto results = reply.init<api::Cuda::GraphInstantiateResults>();
  results.setResult(result);
  results.setProblem(params.result_out);
  results.setNode(static_cast<uint32_t>(std::ranges::find(graph.nodes, params.hErrNode_out, &KnownGraphNode::node) - graph.nodes.begin()));
  results.setAddress(graph.address);
  return CUDA_SUCCESS;
}

CUresult graphUpload(Execution& on, const api::FrameReader<api::Cuda::GraphUploadParams>& p, Reply&) {
  KnownGraph& graph = graphOf(on, p.getGraph());
  if (graph.executable == nullptr) return CUDA_ERROR_INVALID_VALUE;
  noteUploaded(graph);
  return on.driver.cuGraphUpload(graph.executable, on.stream(p.getStream()));
}

CUresult graphLaunch(Execution& on, const api::FrameReader<api::Cuda::GraphLaunchParams>& p, Reply&) {
  return launchGraph(on, graphOf(on, p.getGraph()), p.getStream());
}

namespace {

template <typename Frame>
CUresult launchFenced(Execution& on, const Frame& p, const OtherNumbers& others = {}) {
  if (p.getLine() >= completionWordCount) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = launchGraph(on, graphOf(on, p.getGraph()), p.getStream(), others);
  const CUresult behind = on.signal(on.stream(p.getStream()), on.shared().completionWord(p.getLine()).done, on.sequence());
  return result != CUDA_SUCCESS ? result : behind;
}

}  // namespace

CUresult graphLaunchFenced(Execution& on, const api::FrameReader<api::Cuda::GraphLaunchFencedParams>& p, Reply&) {
  return launchFenced(on, p);
}

CUresult graphLaunchNumbered(Execution& on, const api::FrameReader<api::Cuda::GraphLaunchNumberedParams>& p, Reply&) {
  return launchFenced(on, p, {p.getLines(), p.getNumbers()});
}

namespace {

CUresult destroy(const Driver& driver, const KnownGraph& graph) {
  CUresult result = graph.executable == nullptr ? CUDA_SUCCESS : driver.cuGraphExecDestroy(graph.executable);
  CUresult rest = graph.graph == nullptr ? CUDA_SUCCESS : driver.cuGraphDestroy(graph.graph);
  return result != CUDA_SUCCESS ? result : rest;
}

}  // namespace

CUresult graphEnd(Execution& on, const api::FrameReader<api::Cuda::GraphEndParams>& p, Reply&) {
  KnownGraph ended = std::move(graphOf(on, p.getGraph()));
  on.kept.of<KnownGraphs>().erase(p.getGraph());
  on.handles.remove(api::Kind::GRAPH_EXEC, p.getGraph());
  return on.afterAllWork([&on, ended = std::move(ended)] {
    CUresult result = destroy(on.driver, ended);
    for (uint64_t holder : ended.holders) takeBack(on, holder);
    return result;
  });
}

namespace {

void drop(Execution& on) {
  on.kept.of<KnownGraphs>().clear();
  deviceHandles(on).forget();
}

CUresult destroyAll(Execution& on) {
  for (auto& [handle, graph] : std::exchange(on.kept.of<KnownGraphs>(), {})) {
    if (CUresult error = destroy(on.driver, graph)) return error;
    on.handles.remove(api::Kind::GRAPH_EXEC, handle);
  }
  return CUDA_SUCCESS;
}

}  // namespace

const KindModule graphKind{.name = "graphSettings",
                           .drop = drop,
                           .destroy = destroyAll,
                           .columns = "nnss",
                           .isValid = isGraphRow,
                           .save = saveGraphs,
                           .obstacles = visitChangedNodes,
                           .prepare = prepareGraphs,
                           .compare = compareHandles,
                           .restore = restoreGraphs};

}  // namespace vgpu::stub
