// Nodes that need more than an operation: child graphs, events, memory; and the entries that take a node of any type.
#include <cstring>

#include "stub/emulator/driver/driver.h"
#include "stub/emulator/stream/graph-node.h"

namespace vgpu::emulator::api {
namespace {

// Adds a node that `complete` fills in, with the graphs locked.
template <class Complete>
CUresult addSpecial(CUgraphNode* handle, CUgraph graphHandle, const CUgraphNode* before, size_t count,
                    CUgraphNodeType type, Complete complete) {
  return enterContext([&](Context& context) {
    require(handle != nullptr && (count == 0 || before != nullptr));
    std::lock_guard lock(context.driver.graphMutex);
    std::shared_ptr<Graph> graph = context.driver.graphs.get(graphHandle);
    std::vector<GraphNode*> nodes = graph->nodesOf({before, count});
    GraphNode prepared;
    prepared.operation = {.weight = Weight::light, .type = type};
    complete(context, *graph, prepared);
    std::shared_ptr<GraphNode> node = graph->add(std::move(prepared.operation), nodes);
    node->child = std::move(prepared.child);
    node->event = std::move(prepared.event);
    node->conditional = std::move(prepared.conditional);
    *handle = node->handle;
  });
}

std::shared_ptr<GraphNode> nodeOf(Driver& driver, CUgraphNode handle, CUgraphNodeType type) {
  std::shared_ptr<GraphNode> node = driver.graphNodes.get(handle);
  require(node->operation.type == type);
  return node;
}

CUresult addEventNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* before, size_t count, CUgraphNodeType type,
                      CUevent event) {
  return addSpecial(node, graph, before, count, type,
                    [&](Context& context, Graph&, GraphNode& made) { made.event = context.driver.events.get(event); });
}

CUresult askEvent(CUgraphNode handle, CUgraphNodeType type, CUevent* event) {
  return enterDriver([&](Driver& driver) {
    require(event != nullptr);
    std::lock_guard lock(driver.graphMutex);
    *event = nodeOf(driver, handle, type)->event->handle;
  });
}

CUresult changeEvent(CUgraphNode handle, CUgraphNodeType type, CUevent event) {
  return enterDriver([&](Driver& driver) {
    std::shared_ptr<Event> found = driver.events.get(event);
    std::lock_guard lock(driver.graphMutex);
    nodeOf(driver, handle, type)->event = found;
  });
}

CUresult changeStepEvent(CUgraphExec exec, CUgraphNode node, CUgraphNodeType type, CUevent event) {
  return enterDriver([&](Driver& driver) {
    std::shared_ptr<Event> found = driver.events.get(event);
    std::shared_ptr<GraphExec> changed = driver.graphExecs.get(exec);
    std::lock_guard lock(changed->mutex);
    GraphExec::Step& step = changed->stepOf(node);
    require(step.operation.type == type);
    step.event = found;
  });
}

CUresult addConditional(CUgraphNode* node, CUgraph graph, const CUgraphNode* before, size_t count,
                        CUDA_CONDITIONAL_NODE_PARAMS& given) {
  auto complete = [&](Context& context, Graph& parent, GraphNode& made) {
    Conditions& conditions = *parent.conditions;
    require(given.handle != 0 && given.handle <= conditions.size() && !conditions[given.handle - 1].used && given.size != 0);
    require(given.type == CU_GRAPH_COND_TYPE_SWITCH || (given.type == CU_GRAPH_COND_TYPE_IF && given.size <= 2) ||
            (given.type == CU_GRAPH_COND_TYPE_WHILE && given.size == 1));
    conditions[given.handle - 1].used = true;
    made.conditional = std::make_shared<Conditional>(context.driver);
    made.conditional->number = given.handle;
    made.conditional->type = given.type;
    for (unsigned i = 0; i < given.size; ++i) {
      made.conditional->bodies.push_back(std::make_shared<Graph>(context.driver, parent.conditions));
      made.conditional->handles.push_back(context.driver.graphs.add(made.conditional->bodies.back()));
    }
    given.phGraph_out = made.conditional->handles.data();
  };
  return addSpecial(node, graph, before, count, CU_GRAPH_NODE_TYPE_CONDITIONAL, complete);
}

// cuGraphAddNode calls the entry for the node's type.
CUresult addAny(CUgraphNode* node, CUgraph graph, const CUgraphNode* before, size_t count, CUgraphNodeParams& given) {
  switch (given.type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: {
      CUDA_KERNEL_NODE_PARAMS kernel{};
      std::memcpy(&kernel, &given.kernel, sizeof kernel);  // v3 has the same layout as v2
      return cuGraphAddKernelNode_v2(node, graph, before, count, &kernel);
    }
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      return cuGraphAddMemcpyNode(node, graph, before, count, &given.memcpy.copyParams, given.memcpy.copyCtx);
    case CU_GRAPH_NODE_TYPE_MEMSET: {
      const auto& fill = given.memset;
      CUDA_MEMSET_NODE_PARAMS flat{fill.dst, fill.pitch, fill.value, fill.elementSize, fill.width, fill.height};
      return cuGraphAddMemsetNode(node, graph, before, count, &flat, fill.ctx);
    }
    case CU_GRAPH_NODE_TYPE_HOST: {
      CUDA_HOST_NODE_PARAMS host{given.host.fn, given.host.userData};
      return cuGraphAddHostNode(node, graph, before, count, &host);
    }
    case CU_GRAPH_NODE_TYPE_GRAPH:
      return cuGraphAddChildGraphNode(node, graph, before, count, given.graph.graph);
    case CU_GRAPH_NODE_TYPE_EMPTY:
      return cuGraphAddEmptyNode(node, graph, before, count);
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
      return cuGraphAddEventWaitNode(node, graph, before, count, given.eventWait.event);
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
      return cuGraphAddEventRecordNode(node, graph, before, count, given.eventRecord.event);
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC: {
      CUDA_MEM_ALLOC_NODE_PARAMS wanted{};
      wanted.poolProps = given.alloc.poolProps;
      wanted.accessDescs = given.alloc.accessDescs;
      wanted.accessDescCount = given.alloc.accessDescCount;
      wanted.bytesize = given.alloc.bytesize;
      CUresult added = cuGraphAddMemAllocNode(node, graph, before, count, &wanted);
      given.alloc.dptr = wanted.dptr;
      return added;
    }
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
      return cuGraphAddMemFreeNode(node, graph, before, count, given.free.dptr);
    case CU_GRAPH_NODE_TYPE_CONDITIONAL:
      return addConditional(node, graph, before, count, given.conditional);
    default:
      return CUDA_ERROR_NOT_SUPPORTED;
  }
}

}  // namespace
}  // namespace vgpu::emulator::api

using namespace vgpu::emulator::api;

CUresult CUDAAPI cuGraphAddChildGraphNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* before, size_t count,
                                          CUgraph childHandle) {
  return addSpecial(node, graph, before, count, CU_GRAPH_NODE_TYPE_GRAPH,
                    [&](Context& context, Graph& parent, GraphNode& made) {
                      std::shared_ptr<Graph> child = context.driver.graphs.get(childHandle);
                      require(child.get() != &parent);
                      if (child->hasConditionals() || child->hasDeviceNodes()) refuse(CUDA_ERROR_NOT_SUPPORTED);
                      made.child = child->clone();
                    });
}

CUresult CUDAAPI cuGraphChildGraphNodeGetGraph(CUgraphNode handle, CUgraph* graph) {
  return enterDriver([&](Driver& driver) {
    require(graph != nullptr);
    std::lock_guard lock(driver.graphMutex);
    std::shared_ptr<GraphNode> node = nodeOf(driver, handle, CU_GRAPH_NODE_TYPE_GRAPH);
    if (node->child->handle == nullptr) driver.graphs.add(node->child);
    *graph = node->child->handle;
  });
}

CUresult CUDAAPI cuGraphAddEventRecordNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* before, size_t count,
                                           CUevent event) {
  return addEventNode(node, graph, before, count, CU_GRAPH_NODE_TYPE_EVENT_RECORD, event);
}

CUresult CUDAAPI cuGraphAddEventWaitNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* before, size_t count,
                                         CUevent event) {
  return addEventNode(node, graph, before, count, CU_GRAPH_NODE_TYPE_WAIT_EVENT, event);
}

CUresult CUDAAPI cuGraphEventRecordNodeGetEvent(CUgraphNode node, CUevent* event) {
  return askEvent(node, CU_GRAPH_NODE_TYPE_EVENT_RECORD, event);
}

CUresult CUDAAPI cuGraphEventWaitNodeGetEvent(CUgraphNode node, CUevent* event) {
  return askEvent(node, CU_GRAPH_NODE_TYPE_WAIT_EVENT, event);
}

CUresult CUDAAPI cuGraphEventRecordNodeSetEvent(CUgraphNode node, CUevent event) {
  return changeEvent(node, CU_GRAPH_NODE_TYPE_EVENT_RECORD, event);
}

CUresult CUDAAPI cuGraphEventWaitNodeSetEvent(CUgraphNode node, CUevent event) {
  return changeEvent(node, CU_GRAPH_NODE_TYPE_WAIT_EVENT, event);
}

CUresult CUDAAPI cuGraphExecEventRecordNodeSetEvent(CUgraphExec exec, CUgraphNode node, CUevent event) {
  return changeStepEvent(exec, node, CU_GRAPH_NODE_TYPE_EVENT_RECORD, event);
}

CUresult CUDAAPI cuGraphExecEventWaitNodeSetEvent(CUgraphExec exec, CUgraphNode node, CUevent event) {
  return changeStepEvent(exec, node, CU_GRAPH_NODE_TYPE_WAIT_EVENT, event);
}

CUresult CUDAAPI cuGraphAddMemAllocNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* before, size_t count,
                                        CUDA_MEM_ALLOC_NODE_PARAMS* given) {
  if (given == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return addSpecial(
      node, graph, before, count, CU_GRAPH_NODE_TYPE_MEM_ALLOC, [&](Context& context, Graph& owner, GraphNode& made) {
        const CUmemPoolProps& pool = given->poolProps;
        require(pool.allocType == CU_MEM_ALLOCATION_TYPE_PINNED && given->bytesize != 0);
        require(pool.location.type == CU_MEM_LOCATION_TYPE_DEVICE && pool.handleTypes == CU_MEM_HANDLE_TYPE_NONE);
        Driver& driver = context.driver;
        Device& device = driver.device(pool.location.id);
        given->dptr = driver.pool(device).allocate(given->bytesize, &context);
        owner.memory.push_back(std::make_shared<GraphMemory>(driver, given->dptr));
        made.operation.description = std::make_shared<const CUDA_MEM_ALLOC_NODE_PARAMS>(*given);
      });
}

CUresult CUDAAPI cuGraphMemAllocNodeGetParams(CUgraphNode handle, CUDA_MEM_ALLOC_NODE_PARAMS* answer) {
  return enterDriver([&](Driver& driver) {
    require(answer != nullptr);
    std::lock_guard lock(driver.graphMutex);
    *answer =
        describedAs<CUDA_MEM_ALLOC_NODE_PARAMS>(driver.graphNodes.get(handle)->operation, CU_GRAPH_NODE_TYPE_MEM_ALLOC);
  });
}

// The memory of allocation nodes lives as long as the graph: a free node only marks where its use ends.
CUresult CUDAAPI cuGraphAddMemFreeNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* before, size_t count,
                                       CUdeviceptr address) {
  return addSpecial(node, graph, before, count, CU_GRAPH_NODE_TYPE_MEM_FREE,
                    [&](Context& context, Graph&, GraphNode& made) {
                      require(context.driver.space.findKind(address, MappingKind::plain).has_value());
                      made.operation.description = std::make_shared<const CUdeviceptr>(address);
                    });
}

CUresult CUDAAPI cuGraphMemFreeNodeGetParams(CUgraphNode handle, CUdeviceptr* address) {
  return enterDriver([&](Driver& driver) {
    require(address != nullptr);
    std::lock_guard lock(driver.graphMutex);
    *address = describedAs<CUdeviceptr>(driver.graphNodes.get(handle)->operation, CU_GRAPH_NODE_TYPE_MEM_FREE);
  });
}

CUresult CUDAAPI cuDeviceGraphMemTrim(CUdevice device) {
  return enterDriver([&](Driver& driver) { driver.device(device); });
}

CUresult CUDAAPI cuGraphAddNode_v2(CUgraphNode* node, CUgraph graph, const CUgraphNode* before, const CUgraphEdgeData*,
                                   size_t count, CUgraphNodeParams* given) {
  return given ? addAny(node, graph, before, count, *given) : CUDA_ERROR_INVALID_VALUE;
}
