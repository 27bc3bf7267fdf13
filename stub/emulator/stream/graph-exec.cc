// Executable graphs: made from graphs, changed in place, launched into streams.
#include <algorithm>

#include "stub/emulator/driver/driver.h"
#include "stub/emulator/stream/graph-node.h"

namespace vgpu::emulator::api {
namespace {

// Runs all steps of a body, one after the other: in an order that keeps every dependency.
void runBody(const Domain& domain, const std::vector<Operation>& operations) {
  for (const Operation& operation : operations)
    if (operation.action && !domain.failed()) operation.action();
}

// The work of a step, as one of the graph whose conditions these are.
Operation operationOf(const Domain& domain, const GraphExec::Step& step, const std::shared_ptr<ConditionValues>& values) {
  if (values->empty()) return step.operation;
  if (step.conditional == nullptr) {
    Operation operation = step.operation;
    if (operation.action) operation.action = ConditionValues::inGraph(values, std::move(operation.action));
    return operation;
  }
  std::vector<std::function<void()>> bodies;
  for (const std::vector<GraphExec::Step>& body : step.bodies) {
    std::vector<Operation> operations;
    for (const GraphExec::Step& inside : body) operations.push_back(operationOf(domain, inside, values));
    bodies.push_back([&domain, operations = std::move(operations)] { runBody(domain, operations); });
  }
  return conditionalOperation(domain, *step.conditional, values, std::move(bodies));
}

// Appends the graph's steps, behind `entry` where it is in another graph; returns those that nothing in it waits for.
std::vector<size_t> flatten(const Graph& graph, const std::vector<size_t>& entry, const std::vector<CUgraphNode>& path,
                            std::vector<GraphExec::Step>& steps) {
  std::map<const GraphNode*, std::vector<size_t>> ends;  // the steps that finish a node
  std::map<const GraphNode*, bool> waitedFor;
  for (GraphNode* node : graph.ordered()) {
    std::vector<size_t> before = node->before.empty() ? entry : std::vector<size_t>{};
    for (GraphNode* each : node->before) {
      waitedFor[each] = true;
      before.insert(before.end(), ends[each].begin(), ends[each].end());
    }
    std::vector<CUgraphNode> here = path;
    here.push_back(node->handle);
    if (node->child) {
      ends[node] = flatten(*node->child, before, here, steps);
      if (ends[node].empty()) ends[node] = before;
      continue;
    }
    GraphExec::Step step{node->operation, node->event, before, here};
    step.conditional = node->conditional;
    if (node->conditional)
      for (const std::shared_ptr<Graph>& body : node->conditional->bodies) flatten(*body, {}, here, step.bodies.emplace_back());
    steps.push_back(std::move(step));
    ends[node] = {steps.size() - 1};
  }
  std::vector<size_t> last;
  for (const std::shared_ptr<GraphNode>& node : graph.nodes) {
    if (!waitedFor[node.get()]) last.insert(last.end(), ends[node.get()].begin(), ends[node.get()].end());
  }
  return last;
}

void collectMemory(const Graph& graph, std::vector<std::shared_ptr<GraphMemory>>& memory) {
  memory.insert(memory.end(), graph.memory.begin(), graph.memory.end());
  for (const std::shared_ptr<GraphNode>& node : graph.nodes) {
    if (node->child) collectMemory(*node->child, memory);
  }
}

// Whether an executable's step can become the new one: the same kind of work in the same place.
bool sameShape(const GraphExec::Step& a, const GraphExec::Step& b) {
  return a.operation.type == b.operation.type && a.before == b.before;
}

}  // namespace

GraphExec::GraphExec(const Graph& graph, unsigned long long flags)
    : driver(graph.driver), flags(flags), source(graph.clone()), values(std::make_shared<ConditionValues>(*graph.conditions)) {
  for (const Condition& condition : *graph.conditions) require(condition.used);
  require(!graph.isBody);
  flatten(graph, {}, {}, steps);
  collectMemory(graph, memory);
}

GraphExec::Step& GraphExec::stepOf(CUgraphNode node) {
  for (Step& step : steps) {
    if (step.path.size() == 1 && step.path[0] == node) return step;
  }
  refuse(CUDA_ERROR_INVALID_VALUE);
}

void GraphExec::launch(Stream& stream) {
  std::lock_guard lock(mutex);
  std::vector<GroupMember> members;
  // Before all others, if there are conditions, these get their first values.
  const size_t first = values->empty() ? 0 : 1;
  auto begin = [values = values] { return values->begin(), Outcome::finished; };
  if (first != 0) members.push_back({.operation = {.weight = Weight::light, .action = begin}});
  for (const Step& step : steps) {
    GroupMember member{.operation = step.enabled ? operationOf(stream.context, step, values)
                                                 : Operation{.weight = Weight::light}};
    for (size_t before : step.before) member.before.push_back(before + first);
    if (first != 0 && step.before.empty()) member.before.push_back(0);
    if (step.enabled && step.event) {
      if (step.operation.type == CU_GRAPH_NODE_TYPE_EVENT_RECORD) {
        member.recorded = std::make_shared<Event::Recording>();
        member.operation.action = recordAction(*step.event, member.recorded);
        member.event = step.event;
      } else if (step.event->shared) {
        member.operation.action = awaitAction(*step.event);
      } else if (std::shared_ptr<Event::Recording> awaited = step.event->recording()) {
        member.after = awaited->task;
      }
    }
    members.push_back(std::move(member));
  }
  last = stream.context.streams.submitGroup(stream, std::move(members), last, *source);
  if (!last) return;
  for (const Step& step : steps) {
    if (step.operation.type != CU_GRAPH_NODE_TYPE_KERNEL) continue;
    Context& of = describedAs<LaunchRequest>(step.operation, CU_GRAPH_NODE_TYPE_KERNEL).function->context;
    if (&of != &stream.context) of.streams.share(last);
  }
}

}  // namespace vgpu::emulator::api

using namespace vgpu::emulator::api;

CUresult CUDAAPI cuGraphInstantiateWithFlags(CUgraphExec* handle, CUgraph graphHandle, unsigned long long flags) {
  return enterDriver([&](Driver& driver) {
    constexpr unsigned long long known = CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH |
                                         CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD |
                                         CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;
    require(handle != nullptr);
    if (flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) refuse(CUDA_ERROR_NOT_SUPPORTED);
    require((flags & ~known) == 0);
    const uint64_t most = driver.settings.graphs;
    if (most != 0 && driver.graphExecs.count() >= most) refuse(CUDA_ERROR_OUT_OF_MEMORY);
    std::lock_guard lock(driver.graphMutex);
    *handle = driver.graphExecs.add(std::make_shared<GraphExec>(*driver.graphs.get(graphHandle), flags));
  });
}

CUresult CUDAAPI cuGraphInstantiateWithParams(CUgraphExec* handle, CUgraph graph,
                                              CUDA_GRAPH_INSTANTIATE_PARAMS* parameters) {
  if (parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUresult made = cuGraphInstantiateWithFlags(handle, graph, parameters->flags);
  parameters->hErrNode_out = nullptr;
  parameters->result_out = made == CUDA_SUCCESS ? CUDA_GRAPH_INSTANTIATE_SUCCESS : CUDA_GRAPH_INSTANTIATE_ERROR;
  return made;
}

CUresult CUDAAPI cuGraphExecGetFlags(CUgraphExec handle, cuuint64_t* flags) {
  return enterDriver([&](Driver& driver) {
    require(flags != nullptr);
    *flags = driver.graphExecs.get(handle)->flags;
  });
}

CUresult CUDAAPI cuGraphExecDestroy(CUgraphExec handle) {
  return enterDriver([&](Driver& driver) {
    std::shared_ptr<GraphExec> exec = driver.graphExecs.remove(handle);
    // Its memory must outlive the last launch.
    if (exec->memory.empty()) return;
    std::lock_guard lock(exec->mutex);
    if (exec->last) exec->last->wait();
  });
}

CUresult CUDAAPI cuGraphLaunch(CUgraphExec handle, CUstream streamHandle) {
  return enterContext([&](Context& context) {
    std::shared_ptr<Stream> stream = streamOf(context, streamHandle);
    std::shared_ptr<GraphExec> exec = context.driver.graphExecs.get(handle);
    exec->launch(*stream);
  });
}

CUresult CUDAAPI cuGraphUpload(CUgraphExec handle, CUstream stream) {
  return enterContext([&](Context& context) {
    context.driver.graphExecs.get(handle);
    streamOf(context, stream);  // there is nothing to prepare
  });
}

CUresult CUDAAPI cuGraphExecUpdate_v2(CUgraphExec handle, CUgraph graphHandle, CUgraphExecUpdateResultInfo* result) {
  return enterDriver([&](Driver& driver) {
    require(result != nullptr);
    *result = {};
    std::shared_ptr<GraphExec> exec = driver.graphExecs.get(handle);
    std::unique_lock graphs(driver.graphMutex);
    GraphExec fresh(*driver.graphs.get(graphHandle), exec->flags);
    graphs.unlock();
    std::lock_guard lock(exec->mutex);
    if (!fresh.values->empty() || !exec->values->empty()) {
      result->result = CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED;
      return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
    }
    if (fresh.steps.size() != exec->steps.size()) {
      result->result = CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
      return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
    }
    for (size_t i = 0; i < fresh.steps.size(); ++i) {
      if (sameShape(fresh.steps[i], exec->steps[i])) continue;
      bool kind = fresh.steps[i].operation.type != exec->steps[i].operation.type;
      result->result =
          kind ? CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED : CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
      result->errorNode = fresh.steps[i].path.back();
      return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
    }
    for (size_t i = 0; i < fresh.steps.size(); ++i) {
      exec->steps[i].operation = fresh.steps[i].operation;
      exec->steps[i].event = fresh.steps[i].event;
    }
    result->result = CU_GRAPH_EXEC_UPDATE_SUCCESS;
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuGraphNodeSetEnabled(CUgraphExec handle, CUgraphNode node, unsigned enabled) {
  return enterDriver([&](Driver& driver) {
    std::shared_ptr<GraphExec> exec = driver.graphExecs.get(handle);
    std::lock_guard lock(exec->mutex);
    GraphExec::Step& step = exec->stepOf(node);
    CUgraphNodeType type = step.operation.type;
    require(type == CU_GRAPH_NODE_TYPE_KERNEL || type == CU_GRAPH_NODE_TYPE_MEMCPY ||
            type == CU_GRAPH_NODE_TYPE_MEMSET);
    step.enabled = enabled != 0;
  });
}

CUresult CUDAAPI cuGraphNodeGetEnabled(CUgraphExec handle, CUgraphNode node, unsigned* enabled) {
  return enterDriver([&](Driver& driver) {
    require(enabled != nullptr);
    std::shared_ptr<GraphExec> exec = driver.graphExecs.get(handle);
    std::lock_guard lock(exec->mutex);
    *enabled = exec->stepOf(node).enabled;
  });
}
