// Executable graphs: instantiated from graphs, updated in place, launched into streams.
#include <algorithm>

#include "stub/emulator/driver/driver.h"
#include "stub/emulator/stream/device-graph-check.h"
#include "stub/emulator/stream/device-graph-launch.h"
#include "stub/emulator/stream/device-graph-node.h"
#include "stub/emulator/stream/graph-node.h"

namespace vgpu::emulator::api {
namespace {

// Runs all steps of a body one after the other, in an order that satisfies every dependency.
void runBody(const Domain& domain, const std::vector<Operation>& operations) {
  for (const Operation& operation : operations)
    if (operation.action && !domain.failed()) operation.action();
}

// The operation of a step, run in the graph that has these conditions.
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

// Appends the graph's steps, after `entry` if it is a child graph; returns those on which no other of its steps depends.
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

// Whether a step can be updated to another one: the same type of work with the same dependencies.
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
  forSteps([this](Step& step) {
    if (step.operation.type != CU_GRAPH_NODE_TYPE_KERNEL) return;
    Function& function = *describedAs<LaunchRequest>(step.operation, step.operation.type).function;
    step.calls = callsOf(function.kernel());
    launchesGraphs |= step.calls.launchGraphs;
    if (context == nullptr) context = &function.context;
  });
}

bool GraphExec::Step::runs() const { return enabled || deviceNodeOf(operation) != nullptr; }

GraphExec::Step& GraphExec::stepOf(CUgraphNode node) {
  for (Step& step : steps) {
    if (step.path.size() == 1 && step.path[0] == node) return step;
  }
  refuse(CUDA_ERROR_INVALID_VALUE);
}

void GraphExec::launch(Stream& stream) {
  std::lock_guard lock(mutex);
  const bool isCaptured = stream.capturing();
  std::shared_ptr<GraphEnvironment> environment;
  TaskRef complete;
  if (!isCaptured && (launchesGraphs || isForKernels())) {
    complete = std::make_shared<Task>(unfailing(), Weight::light, Action{});
    environment = GraphEnvironment::ofHost(shared_from_this(), stream.context, complete);
  }
  std::vector<GroupMember> members;
  if (Action begin = isCaptured ? Action{} : beginning(environment))
    members.push_back({.operation = {.weight = Weight::light, .action = std::move(begin)}, .always = true});
  const size_t first = members.size();
  for (const Step& step : steps) {
    GroupMember member{.operation = step.runs() ? operationOf(stream.context, step, values) : Operation{.weight = Weight::light}};
    Action& action = member.operation.action;
    const CUgraphNodeType type = step.operation.type;
    if (environment && action && (type == CU_GRAPH_NODE_TYPE_KERNEL || type == CU_GRAPH_NODE_TYPE_CONDITIONAL))
      action = environment->inside(std::move(action));
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
  if (environment) {
    auto end = [environment] { return environment->end(), Outcome::finished; };
    GroupMember behind{.operation = {.action = end}, .always = true};
    for (size_t i = 0; i < members.size(); ++i) behind.before.push_back(i);
    members.push_back(std::move(behind));
  }
  last = stream.context.streams.submitGroup(stream, std::move(members), last, *source, complete);
  if (!isCaptured) haveChanged();
  if (!last) return;
  for (const Step& step : steps) {
    if (step.operation.type != CU_GRAPH_NODE_TYPE_KERNEL) continue;
    Context& of = describedAs<LaunchRequest>(step.operation, CU_GRAPH_NODE_TYPE_KERNEL).function->context;
    if (&of != &stream.context) of.streams.share(last);
  }
}

}  // namespace vgpu::emulator::api

using namespace vgpu::emulator::api;

namespace {

// `problem`: what is wrong with the graph, unless the call itself is wrong.
void instantiate(Driver& driver, CUgraphExec* handle, CUgraph graphHandle, unsigned long long flags,
                 std::optional<InstantiateProblem>& problem) {
  constexpr unsigned long long known = CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD |
                                       CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;
  require(handle != nullptr && (flags & ~known) == 0);
  require((flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) == 0 || (flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH) == 0);
  const uint64_t most = driver.settings.graphs;
  if (most != 0 && driver.graphExecs.count() >= most) refuse(CUDA_ERROR_OUT_OF_MEMORY);
  std::lock_guard lock(driver.graphMutex);
  auto made = std::make_shared<GraphExec>(*driver.graphs.get(graphHandle), flags);
  problem = findProblem(*made);
  if (problem) refuse(CUDA_ERROR_INVALID_VALUE);
  std::vector<std::shared_ptr<DeviceNode>> nodes;
  made->forSteps([&](const GraphExec::Step& step) {
    if (std::shared_ptr<DeviceNode> node = deviceNodeOf(step.operation)) nodes.push_back(node);
  });
  for (const std::shared_ptr<DeviceNode>& node : nodes) require(!node->instantiated, CUDA_ERROR_NOT_SUPPORTED);
  for (const std::shared_ptr<DeviceNode>& node : nodes) node->instantiated = true;
  if (!made->isForKernels()) {
    *handle = driver.graphExecs.add(std::move(made));
    return;
  }
  *handle = asHandle<CUgraphExec>(driver.deviceGraphHandles.take());
  driver.graphExecs.addAs(*handle, std::move(made));
}

}  // namespace

CUresult CUDAAPI cuGraphInstantiateWithFlags(CUgraphExec* handle, CUgraph graph, unsigned long long flags) {
  return enterDriver([&](Driver& driver) {
    std::optional<InstantiateProblem> problem;
    instantiate(driver, handle, graph, flags, problem);
  });
}

CUresult CUDAAPI cuGraphInstantiateWithParams(CUgraphExec* handle, CUgraph graph,
                                              CUDA_GRAPH_INSTANTIATE_PARAMS* parameters) {
  if (parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::optional<InstantiateProblem> problem;
  CUresult made = enterDriver([&](Driver& driver) { instantiate(driver, handle, graph, parameters->flags, problem); });
  if (made == CUDA_SUCCESS && (parameters->flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD) != 0) {
    made = cuGraphUpload(*handle, parameters->hUploadStream);
    if (made != CUDA_SUCCESS) cuGraphExecDestroy(*handle);
  }
  if (!problem && made != CUDA_SUCCESS) problem = {CUDA_GRAPH_INSTANTIATE_ERROR, nullptr};
  parameters->hErrNode_out = problem ? problem->node : nullptr;
  parameters->result_out = problem ? problem->result : CUDA_GRAPH_INSTANTIATE_SUCCESS;
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
    if (exec->isForKernels()) driver.deviceGraphHandles.give(asNumber(handle));
    exec->close();
    // The graph's memory must outlive its last launch.
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
    std::shared_ptr<GraphExec> exec = context.driver.graphExecs.get(handle);
    exec->upload(*streamOf(context, stream));
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
    bool hasDeviceNodes = false;
    for (GraphExec* each : {&fresh, exec.get()})
      each->forSteps([&](const GraphExec::Step& step) { hasDeviceNodes |= deviceNodeOf(step.operation) != nullptr; });
    if (hasDeviceNodes) refuse(CUDA_ERROR_NOT_SUPPORTED);
    const bool launchesMore = fresh.launchesGraphs && !exec->launchesGraphs && !exec->isForKernels();
    if (!fresh.values->empty() || !exec->values->empty() || findProblem(fresh) || launchesMore) {
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
    if (type == CU_GRAPH_NODE_TYPE_KERNEL) {  // unknown error if its module has been unloaded, as on hardware
      const CUfunction function = describedAs<LaunchRequest>(step.operation, type).function->handle;
      require(step.enabled == (enabled != 0) || driver.functions.find(function) != nullptr, CUDA_ERROR_UNKNOWN);
    }
    step.enabled = enabled != 0;
    step.changed = true;
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
