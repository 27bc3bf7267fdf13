// The content of an executable graph: the steps of its graph in order, and the frames that make the worker's nodes for them.
#include <algorithm>
#include <bit>

#include "intercept/session/call.h"
#include "intercept/session/graph/device-node.h"
#include "intercept/session/graph/executable.h"
#include "intercept/session/graph/staging.h"
#include "intercept/session/graph/step-frames.h"
#include "intercept/session/ring-order.h"

namespace vgpu::client {

// Sends the frames of one step.
class Executable::Sender {
 public:
  Sender(Thread& thread, Executable& graph, const Step& step, std::vector<uint32_t> before, bool isSet, bool isOther = false)
      : thread(thread), graph(graph), step(step), before(std::move(before)), isSet(isSet), isOther(isOther), next(step.first) {}

  CUresult operator()(const EmptyWork&) { return sendWords(thread, node(), OwnWords::none); }
  CUresult operator()(const KernelWork& work) { return sendKernel(thread, node(), work); }
  CUresult operator()(const FillWork& work) { return sendFill(thread, node(), work); }
  CUresult operator()(const MemOpsWork& work) { return sendMemOps(thread, node(), work); }
  CUresult operator()(const LibraryWork& work) { return sendCaptured(thread, node(), work); }
  CUresult operator()(const HostWork&) { return sendHost(); }
  CUresult operator()(const EventWork& work) {
    if (!work.waits) {  // the worker writes the number before it records (docs/ring.md)
      const WorkerNode words = node();
      if (CUresult error = isSet ? CUDA_SUCCESS : sendWords(thread, words, OwnWords::signals, *step.word)) return error;
    }
    return sendEvent(thread, node(), work);
  }
  CUresult operator()(const CopyWork& work) {
    if (!isPageable(work)) return sendCopy(thread, node(), work.to, work.from, work.size);
    const bool in = formOf(work) == CopyForm::fromProgram, out = formOf(work) == CopyForm::toProgram;
    if (!in && !out) return sendHost();
    const CopyEnd staging = CopyEnd::memory(step.staging->address, work.size.width, work.size.width * work.size.height);
    if (in)
      if (CUresult error = sendHost()) return error;
    if (CUresult error = sendCopy(thread, node(), out ? staging : work.to, in ? staging : work.from, work.size)) return error;
    return out ? sendHost() : CUDA_SUCCESS;
  }
  CUresult operator()(const AllocWork&) { return sendWords(thread, node(), OwnWords::none); }
  CUresult operator()(const FreeWork&) { return sendWords(thread, node(), OwnWords::none); }
  CUresult operator()(const ConditionalWork& work) { return sendConditional(thread, node(), work); }
  CUresult operator()(const ChildWork&) { return CUDA_SUCCESS; }  // a child's steps are steps of the executable graph

  // The number of the next worker's node.
  uint32_t sent() const { return next; }

 private:
  // The word stays the same as long as the graph exists.
  CUresult sendHost() {
    const WorkerNode words = node(graph.device);
    return isSet ? CUDA_SUCCESS : sendWords(thread, words, OwnWords::signalsAndWaits, *step.word);
  }
  // The next worker's node of the step: the first depends on the step's dependencies, each other one on its predecessor.
  WorkerNode node() { return node(step.device); }
  WorkerNode node(unsigned device) {
    graph.follow(thread, device);  // fails only if the session is lost; then the node's frame fails too
    WorkerNode made{graph.handle, next++, isSet ? std::vector<uint32_t>{} : std::move(before), isSet, device, isOther};
    before = {made.number};
    return made;
  }

  Thread& thread;
  Executable& graph;
  const Step& step;
  std::vector<uint32_t> before;
  const bool isSet, isOther;
  uint32_t next;
};

namespace {

// An edge to a child node counts for the whole child, without a port. A capture, as the driver's, can make an edge that cannot be added to
// a graph: a programmatic one to a node that is no kernel.
bool keepsPort(const GraphEdge& edge, const GraphNode& to) {
  const CUgraphNodeType type = to.type();
  return type != CU_GRAPH_NODE_TYPE_GRAPH && isPossible(edge.from->type(), &type, edge.data);
}

}  // namespace

// Appends a graph's steps; those without dependencies depend on `entry`. `last`: receives the steps on which no other step of the graph
// depends. False if there is a cycle.
bool Executable::flatten(const Graph& graph, const std::vector<uint32_t>& entry, const Place& place, Shape& shape,
                         std::vector<uint32_t>& last) {
  auto ordered = graph.ordered();
  if (ordered.size() != graph.all().size()) return false;
  std::unordered_map<const GraphNode*, std::vector<uint32_t>> ends;  // the steps that complete a node
  std::unordered_map<const GraphNode*, bool> isAwaited;
  for (GraphNode* node : ordered) {
    std::vector<uint32_t> before = node->before.empty() ? entry : std::vector<uint32_t>{};
    std::vector<PortedEdge> ported;
    for (auto& edge : node->before) {
      isAwaited[edge.from] = true;
      if (hasPort(edge.data) && keepsPort(edge, *node)) {
        ported.push_back({ends[edge.from].front(), edge.data});
        continue;
      }
      before.insert(before.end(), ends[edge.from].begin(), ends[edge.from].end());
    }
    std::ranges::sort(before);
    before.erase(std::unique(before.begin(), before.end()), before.end());
    if (auto* child = std::get_if<ChildWork>(&node->work)) {
      if (!flatten(*child->graph, before, place, shape, ends[node])) return false;
      if (ends[node].empty()) ends[node] = before;
      continue;
    }
    const auto number = static_cast<uint32_t>(shape.steps.size());
    shape.steps.push_back({.node = node->handle, .work = node->work, .before = std::move(before), .ported = std::move(ported), .place = place});
    ends[node] = {number};
    if (auto* conditional = std::get_if<ConditionalWork>(&node->work)) {
      auto& ofStep = std::get<ConditionalWork>(shape.steps.back().work);
      for (auto& body : ofStep.bodies) body.reset();  // bodies end with the graph's node: only their number is kept
      ofStep.handles.reset();
      for (uint32_t body = 0; body < conditional->bodies.size(); ++body) {
        std::vector<uint32_t> lastOfBody;
        if (!flatten(*conditional->bodies[body], {}, {number, body}, shape, lastOfBody)) return false;
      }
    }
  }
  for (auto& node : graph.all())
    if (!isAwaited[node.get()]) last.insert(last.end(), ends[node.get()].begin(), ends[node.get()].end());
  return true;
}

bool Executable::flatten(const Graph& graph, Shape& shape) {
  std::vector<uint32_t> last;
  return flatten(graph, {}, {}, shape, last);
}

// Whether it is a conditional node, or in the body of one.
bool Executable::isConditional(const Step& step) {
  return step.place.step != Place::none || std::holds_alternative<ConditionalWork>(step.work);
}

// Source: cuda.h, CUDA_CONDITIONAL_NODE_PARAMS: bodies contain no host work and no events.
CUresult Executable::checkBodies(const Shape& shape, Problem& problem) {
  for (auto& step : shape.steps) {
    if (step.place.step == Place::none || !(runsOnHost(step.work) || std::holds_alternative<EventWork>(step.work))) continue;
    problem.node = step.node;
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  return CUDA_SUCCESS;
}

// CUDA C++ Programming Guide, "Device Graph Launch": only kernel, copy and fill nodes on one device. The driver checks which kernels and
// copies are allowed.
CUresult Executable::checkLaunchable(const Shape& shape, uint64_t flags, uint32_t devices, Problem& problem) {
  if (shape.steps.empty() || (flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH) != 0) return CUDA_ERROR_INVALID_VALUE;
  for (auto& step : shape.steps) {
    const CUgraphNodeType type = typeOf(step.work);
    const bool isPart = type == CU_GRAPH_NODE_TYPE_KERNEL || type == CU_GRAPH_NODE_TYPE_MEMSET ||
                        type == CU_GRAPH_NODE_TYPE_GRAPH || (type == CU_GRAPH_NODE_TYPE_MEMCPY && !runsOnHost(step.work));
    if (isPart) continue;
    problem.node = step.node;
    // For pageable memory the driver reports that it belongs to another context.
    problem.instantiate = type == CU_GRAPH_NODE_TYPE_MEMCPY ? CUDA_GRAPH_INSTANTIATE_MULTIPLE_CTXS_NOT_SUPPORTED
                                                            : CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED;
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (std::popcount(devices) <= 1) return CUDA_SUCCESS;  // fills and copies may name no device
  problem.instantiate = CUDA_GRAPH_INSTANTIATE_MULTIPLE_CTXS_NOT_SUPPORTED;
  return CUDA_ERROR_INVALID_VALUE;
}

// Child graphs have no device nodes.
bool Executable::hasDeviceNodes(const Graph& graph) {
  return std::ranges::any_of(graph.all(), [](auto& node) {
    auto* conditional = std::get_if<ConditionalWork>(&node->work);
    return node->isDeviceUpdatable() ||
           (conditional != nullptr && std::ranges::any_of(conditional->bodies, [](auto& body) { return hasDeviceNodes(*body); }));
  });
}

// Prepares what a step needs besides the worker's nodes: completion word, staging memory, host function.
CUresult Executable::prepare(Thread& thread, Step& step) {
  if (!step.word && (runsOnHost(step.work) || isRecord(step.work))) {
    step.word = session.completionWords.take(wordDevice(step));
    if (!step.word) return CUDA_ERROR_OUT_OF_MEMORY;
    step.number = 0;
    // If the session moves to another host, the mirror there watches the words that are not 0: this one too, which no later frame names.
    uint64_t unused = 0;
    session.segment.completionWord(*step.word).answered.compare_exchange_strong(unused, 1);
  }
  auto* copy = std::get_if<CopyWork>(&step.work);
  const bool isStaged = copy != nullptr && isPageable(*copy) && formOf(*copy) != CopyForm::inProgram;
  if (isStaged && !(step.staging && step.staging->bytes >= copy->size.bytes())) {
    if (step.staging) replaced.push_back(step.staging);
    if (CUresult error = Staging::make(thread, copy->size.bytes(), step.staging)) return error;
  }
  if (!runsOnHost(step.work)) return CUDA_SUCCESS;
  auto function = functionOf(step, step.enabled);
  if (step.function) session.hostFunctions[device].change(*step.function, HostFunctions::made(std::move(function)));
  else step.function = session.hostFunctions[device].addOfNode(*step.word, std::move(function));
  return CUDA_SUCCESS;
}

CUresult Executable::sendSteps(Thread& thread, Problem& problem) {
  hosts.clear();
  records.clear();
  uint32_t sent = 0;
  Place place;
  for (uint32_t i = 0; i < shape.steps.size(); ++i) {
    Step& step = shape.steps[i];
    problem.node = step.node;
    if (step.place != place) {
      place = step.place;
      const bool isInside = place.step != Place::none;
      const WorkerBody body = isInside ? WorkerBody{shape.steps[place.step].first, place.body} : WorkerBody{};
      if (CUresult error = follow(thread, device)) return error;
      if (CUresult error = sendBody(thread, handle, body)) return error;
    }
    if (CUresult error = sendStep(thread, i, sent)) return error;
  }
  problem.node = 0;
  return CUDA_SUCCESS;
}

// The work may name objects made just now in another device's ring.
CUresult Executable::sendSet(Thread& thread, const Step& step, bool isOther) {
  const uint32_t others = devicesNamed(session, step.work) & ~(1u << step.device);
  if (CUresult error = orderBehindAll(thread, step.device, others)) return error;
  return std::visit(Sender(thread, *this, step, {}, true, isOther), step.work);
}

CUresult Executable::sendStep(Thread& thread, uint32_t number, uint32_t& sent) {
  Step& step = shape.steps[number];
  step.first = sent;
  if (CUresult error = prepare(thread, step)) return error;
  std::vector<uint32_t> before;
  for (uint32_t other : step.before) before.push_back(shape.steps[other].last);
  Sender sender(thread, *this, step, std::move(before), false);
  const bool isLeftOut = !step.enabled && step.place.step != Place::none;
  if (CUresult error = isLeftOut ? sender(EmptyWork{}) : std::visit(sender, step.work)) return error;
  for (auto& edge : step.ported) {
    const WorkerEdge made{shape.steps[edge.from].last, step.first, edge.data};
    if (CUresult error = sendEdge(thread, handle, step.device, made)) return error;
  }
  sent = sender.sent();
  step.last = sent - 1;
  byNode[step.node] = number;
  if (runsOnHost(step.work)) hosts.push_back(number);
  if (isRecord(step.work)) records.push_back(number);
  return CUDA_SUCCESS;
}

CUresult Executable::claim(const Step& step) {
  if (auto node = deviceNodeOf(step.work)) {
    if (handleDevice(node->holder) != step.device) return CUDA_ERROR_INVALID_VALUE;
    if (node->isInstantiated.exchange(true)) return CUDA_ERROR_NOT_SUPPORTED;
    deviceNodes.push_back(node);
  }
  if (auto* alloc = std::get_if<AllocWork>(&step.work)) {
    if (!session.graphMemories.isThere(*alloc->memory)) return CUDA_ERROR_INVALID_VALUE;
    if (alloc->memory->isInstantiated.exchange(true)) return CUDA_ERROR_NOT_SUPPORTED;
    allocated.push_back(alloc->memory);
  }
  if (auto* free = std::get_if<FreeWork>(&step.work)) {
    if (!session.graphMemories.isThere(*free->memory)) return CUDA_ERROR_INVALID_VALUE;
    freed.push_back(free->memory);
  }
  return CUDA_SUCCESS;
}

}  // namespace vgpu::client
