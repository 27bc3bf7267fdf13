// The entries that add nodes to graphs, and query or change nodes of graphs and of executable graphs.
#include "stub/emulator/stream/graph-node.h"

#include <cstring>
#include <optional>

#include "stub/emulator/driver/driver.h"
#include "stub/emulator/memory/copy.h"

namespace vgpu::emulator::api {

Operation makeKernel(Context& context, const CUDA_KERNEL_NODE_PARAMS& given) {
  std::shared_ptr<Function> function;
  if (given.func) {
    function = functionFor(context, given.func);
  } else {
    Context& owner = given.ctx ? *context.driver.contexts.get(given.ctx) : context;
    function = context.driver.kernels.get(given.kern)->functionIn(owner);
  }
  LaunchRequest request{.function = function,
                        .grid = {given.gridDimX, given.gridDimY, given.gridDimZ},
                        .block = {given.blockDimX, given.blockDimY, given.blockDimZ},
                        .dynamicSharedBytes = given.sharedMemBytes};
  checkLaunch(request);
  request.parameters = readParameters(function->kernel(), given.kernelParams, given.extra);
  return launchOperation(std::move(request));
}

Operation makeMemcpy(Context& context, const CUDA_MEMCPY3D& given) { return copy3dOperation(context, given); }

Operation makeMemset(Context& context, const CUDA_MEMSET_NODE_PARAMS& given) {
  require(given.elementSize == 1 || given.elementSize == 2 || given.elementSize == 4);
  require(given.width != 0 && given.height != 0);
  return fillOperation(context, {given.dst, given.pitch, given.value, given.elementSize, given.width, given.height});
}

Operation makeHost(const CUDA_HOST_NODE_PARAMS& given) {
  require(given.fn != nullptr);
  return {.action =
              [given] {
                given.fn(given.userData);
                return Outcome::finished;
              },
          .type = CU_GRAPH_NODE_TYPE_HOST,
          .description = std::make_shared<const CUDA_HOST_NODE_PARAMS>(given)};
}

namespace {

CUDA_KERNEL_NODE_PARAMS kernelParams(const Operation& operation) {
  const auto& request = describedAs<LaunchRequest>(operation, CU_GRAPH_NODE_TYPE_KERNEL);
  CUDA_KERNEL_NODE_PARAMS answer{};
  answer.func = request.function->handle;
  answer.gridDimX = request.grid[0];
  answer.gridDimY = request.grid[1];
  answer.gridDimZ = request.grid[2];
  answer.blockDimX = request.block[0];
  answer.blockDimY = request.block[1];
  answer.blockDimZ = request.block[2];
  answer.sharedMemBytes = request.dynamicSharedBytes;
  answer.kernelParams = const_cast<void**>(request.pointers.data());
  return answer;
}

// Adds the operation that `make` returns to the graph.
template <class Make>
CUresult addNode(CUgraphNode* handle, CUgraph graphHandle, const CUgraphNode* before, size_t count, Make make) {
  return enterContext([&](Context& context) {
    require(handle != nullptr && (count == 0 || before != nullptr));
    Operation operation = make(context);
    std::lock_guard lock(context.driver.graphMutex);
    std::shared_ptr<Graph> graph = context.driver.graphs.get(graphHandle);
    *handle = graph->add(std::move(operation), graph->nodesOf({before, count}))->handle;
  });
}

// Calls `ask` with the node.
template <class Ask>
CUresult askNode(CUgraphNode handle, Ask ask) {
  return enterDriver([&](Driver& driver) {
    std::lock_guard lock(driver.graphMutex);
    ask(*driver.graphNodes.get(handle));
  });
}

// A kernel node keeps its attributes when it is changed.
Operation withAttributesOf(const Operation& before, Operation made) {
  if (before.type != CU_GRAPH_NODE_TYPE_KERNEL || made.type != CU_GRAPH_NODE_TYPE_KERNEL) return made;
  const auto& kept = describedAs<LaunchRequest>(before, before.type);
  LaunchRequest request = describedAs<LaunchRequest>(made, made.type);
  request.cooperative = kept.cooperative;
  request.cluster = kept.cluster;
  request.device = kept.device;
  checkLaunch(request);
  return launchOperation(std::move(request));
}

// Replaces a node's operation by the one that `make` returns, which must be of the same type.
template <class Make>
CUresult changeNode(CUgraphNode handle, Make make) {
  return enterContext([&](Context& context) {
    Operation operation = make(context);
    std::lock_guard lock(context.driver.graphMutex);
    std::shared_ptr<GraphNode> node = context.driver.graphNodes.get(handle);
    require(node->operation.type == operation.type);
    node->operation = withAttributesOf(node->operation, std::move(operation));
  });
}

bool isOneDimensional(const CUDA_MEMCPY3D& copy) { return copy.Height == 1 && copy.Depth == 1; }

// The kind of memory of a copy's end, which an update must keep. If the program uses unified addresses, any memory that the device can
// access is the same kind.
std::optional<MappingKind> placeOf(Driver& driver, CUmemorytype type, const void* host, CUdeviceptr device) {
  std::optional<Mapping> mapping = driver.space.find(type == CU_MEMORYTYPE_HOST ? asNumber(host) : device);
  if (mapping && type == CU_MEMORYTYPE_UNIFIED) return MappingKind{};
  return mapping ? std::optional(mapping->kind) : std::nullopt;
}

// Refuses updates that cuda.h excludes in the text of each cuGraphExec…SetParams.
void checkUpdate(const GraphExec& exec, const GraphExec::Step& step, const Operation& to) {
  Driver& driver = exec.driver;
  const Operation& from = step.operation;
  require(from.type == to.type);
  switch (from.type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: {
      auto &before = describedAs<LaunchRequest>(from, from.type), &after = describedAs<LaunchRequest>(to, to.type);
      require(&before.function->context == &after.function->context);
      const KernelCalls has = callsOf(after.function->kernel());
      require(!has.launchKernels || step.calls.launchKernels);
      require(!has.changeNodes || step.calls.changeNodes);
      require(!has.launchGraphs || exec.launchesGraphs || exec.isForKernels());
      return;
    }
    case CU_GRAPH_NODE_TYPE_MEMCPY: {
      auto &before = describedAs<CUDA_MEMCPY3D>(from, from.type), &after = describedAs<CUDA_MEMCPY3D>(to, to.type);
      require(isOneDimensional(before) && isOneDimensional(after));
      require(placeOf(driver, before.srcMemoryType, before.srcHost, before.srcDevice) ==
              placeOf(driver, after.srcMemoryType, after.srcHost, after.srcDevice));
      require(placeOf(driver, before.dstMemoryType, before.dstHost, before.dstDevice) ==
              placeOf(driver, after.dstMemoryType, after.dstHost, after.dstDevice));
      return;
    }
    case CU_GRAPH_NODE_TYPE_MEMSET: {
      auto& was = describedAs<CUDA_MEMSET_NODE_PARAMS>(from, from.type);
      auto& is = describedAs<CUDA_MEMSET_NODE_PARAMS>(to, to.type);
      require(was.height == is.height);
      require(is.height == 1 || (was.width == is.width && was.pitch == is.pitch && was.elementSize == is.elementSize));
      return;
    }
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP: {
      auto &before = describedAs<MemOps>(from, from.type), &after = describedAs<MemOps>(to, to.type);
      require(before.context == after.context && before.operations.size() == after.operations.size());
      for (size_t i = 0; i < after.operations.size(); ++i)
        require(before.operations[i].operation == after.operations[i].operation);
      return;
    }
    default:
      return;
  }
}

// Changes a step of an executable graph.
template <class Make>
CUresult changeStep(CUgraphExec handle, CUgraphNode node, Make make) {
  return enterContext([&](Context& context) {
    Operation operation = make(context);
    std::shared_ptr<GraphExec> exec = context.driver.graphExecs.get(handle);
    std::lock_guard lock(exec->mutex);
    GraphExec::Step& step = exec->stepOf(node);
    checkUpdate(*exec, step, operation);
    step.operation = withAttributesOf(step.operation, std::move(operation));
    step.changed = true;
  });
}

Context& contextOr(Context& current, CUcontext handle) {
  return handle ? *current.driver.contexts.get(handle) : current;
}

}  // namespace
}  // namespace vgpu::emulator::api

using namespace vgpu::emulator::api;

CUresult CUDAAPI cuGraphAddKernelNode_v2(CUgraphNode* node, CUgraph graph, const CUgraphNode* before, size_t count,
                                         const CUDA_KERNEL_NODE_PARAMS* given) {
  if (given == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return addNode(node, graph, before, count, [&](Context& context) { return makeKernel(context, *given); });
}

CUresult CUDAAPI cuGraphKernelNodeGetParams_v2(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS* answer) {
  if (answer == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return askNode(node, [&](GraphNode& asked) { *answer = kernelParams(asked.operation); });
}

CUresult CUDAAPI cuGraphKernelNodeSetParams_v2(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS* given) {
  if (given == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return changeNode(node, [&](Context& context) { return makeKernel(context, *given); });
}

CUresult CUDAAPI cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, CUgraphNode node,
                                                   const CUDA_KERNEL_NODE_PARAMS* given) {
  if (given == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return changeStep(exec, node, [&](Context& context) { return makeKernel(context, *given); });
}

CUresult CUDAAPI cuGraphAddMemcpyNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* before, size_t count,
                                      const CUDA_MEMCPY3D* given, CUcontext owner) {
  if (given == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return addNode(node, graph, before, count,
                 [&](Context& context) { return makeMemcpy(contextOr(context, owner), *given); });
}

CUresult CUDAAPI cuGraphMemcpyNodeGetParams(CUgraphNode node, CUDA_MEMCPY3D* answer) {
  if (answer == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return askNode(node, [&](GraphNode& asked) {
    *answer = describedAs<CUDA_MEMCPY3D>(asked.operation, CU_GRAPH_NODE_TYPE_MEMCPY);
  });
}

CUresult CUDAAPI cuGraphMemcpyNodeSetParams(CUgraphNode node, const CUDA_MEMCPY3D* given) {
  if (given == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return changeNode(node, [&](Context& context) { return makeMemcpy(context, *given); });
}

CUresult CUDAAPI cuGraphExecMemcpyNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D* given,
                                                CUcontext owner) {
  if (given == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return changeStep(exec, node, [&](Context& context) { return makeMemcpy(contextOr(context, owner), *given); });
}

CUresult CUDAAPI cuGraphAddMemsetNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* before, size_t count,
                                      const CUDA_MEMSET_NODE_PARAMS* given, CUcontext owner) {
  if (given == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return addNode(node, graph, before, count,
                 [&](Context& context) { return makeMemset(contextOr(context, owner), *given); });
}

CUresult CUDAAPI cuGraphMemsetNodeGetParams(CUgraphNode node, CUDA_MEMSET_NODE_PARAMS* answer) {
  if (answer == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return askNode(node, [&](GraphNode& asked) {
    *answer = describedAs<CUDA_MEMSET_NODE_PARAMS>(asked.operation, CU_GRAPH_NODE_TYPE_MEMSET);
  });
}

CUresult CUDAAPI cuGraphMemsetNodeSetParams(CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS* given) {
  if (given == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return changeNode(node, [&](Context& context) { return makeMemset(context, *given); });
}

CUresult CUDAAPI cuGraphExecMemsetNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                                const CUDA_MEMSET_NODE_PARAMS* given, CUcontext owner) {
  if (given == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return changeStep(exec, node, [&](Context& context) { return makeMemset(contextOr(context, owner), *given); });
}

CUresult CUDAAPI cuGraphAddHostNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* before, size_t count,
                                    const CUDA_HOST_NODE_PARAMS* given) {
  if (given == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return addNode(node, graph, before, count, [&](Context&) { return makeHost(*given); });
}

CUresult CUDAAPI cuGraphHostNodeGetParams(CUgraphNode node, CUDA_HOST_NODE_PARAMS* answer) {
  if (answer == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return askNode(node, [&](GraphNode& asked) {
    *answer = describedAs<CUDA_HOST_NODE_PARAMS>(asked.operation, CU_GRAPH_NODE_TYPE_HOST);
  });
}

CUresult CUDAAPI cuGraphHostNodeSetParams(CUgraphNode node, const CUDA_HOST_NODE_PARAMS* given) {
  if (given == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return changeNode(node, [&](Context&) { return makeHost(*given); });
}

CUresult CUDAAPI cuGraphExecHostNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_HOST_NODE_PARAMS* given) {
  if (given == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return changeStep(exec, node, [&](Context&) { return makeHost(*given); });
}

CUresult CUDAAPI cuGraphAddEmptyNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* before, size_t count) {
  return addNode(node, graph, before, count, [](Context&) { return Operation{.weight = Weight::light}; });
}

CUresult CUDAAPI cuGraphAddBatchMemOpNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* before, size_t count,
                                          const CUDA_BATCH_MEM_OP_NODE_PARAMS* given) {
  if (given == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return addNode(node, graph, before, count, [&](Context& context) { return makeMemOps(context, *given); });
}

CUresult CUDAAPI cuGraphBatchMemOpNodeGetParams(CUgraphNode node, CUDA_BATCH_MEM_OP_NODE_PARAMS* answer) {
  if (answer == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return askNode(node, [&](GraphNode& asked) {
    const auto& known = describedAs<MemOps>(asked.operation, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP);
    *answer = {known.context, static_cast<unsigned>(known.operations.size()),
               const_cast<CUstreamBatchMemOpParams*>(known.operations.data()), known.flags};
  });
}

CUresult CUDAAPI cuGraphBatchMemOpNodeSetParams(CUgraphNode node, const CUDA_BATCH_MEM_OP_NODE_PARAMS* given) {
  if (given == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return changeNode(node, [&](Context& context) { return makeMemOps(context, *given); });
}

CUresult CUDAAPI cuGraphExecBatchMemOpNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                                    const CUDA_BATCH_MEM_OP_NODE_PARAMS* given) {
  if (given == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return changeStep(exec, node, [&](Context& context) { return makeMemOps(context, *given); });
}
