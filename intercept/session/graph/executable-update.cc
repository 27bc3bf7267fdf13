// Changes to an executable graph: of one node, of all nodes by another graph of the same shape, and disabling of nodes.
#include <kj/common.h>
#include <kj/exception.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "intercept/session/call.h"
#include "intercept/session/graph/executable.h"
#include "intercept/session/graph/node-attributes.h"
#include "intercept/session/graph/owned-memory.h"
#include "intercept/session/graph/step-frames.h"

namespace vgpu::client {

namespace {

// Whether the worker's node already does this.
bool isSame(const NodeWork& a, const NodeWork& b) {
  auto *library = std::get_if<LibraryWork>(&a), *otherLibrary = std::get_if<LibraryWork>(&b);
  if (library != nullptr && otherLibrary != nullptr) return library->call == otherLibrary->call;
  auto *copy = std::get_if<CopyWork>(&a), *otherCopy = std::get_if<CopyWork>(&b);
  if (copy != nullptr && otherCopy != nullptr)
    return copy->to == otherCopy->to && copy->from == otherCopy->from && copy->size == otherCopy->size;
  auto *kernel = std::get_if<KernelWork>(&a), *other = std::get_if<KernelWork>(&b);
  if (kernel != nullptr && other != nullptr)
    return kernel->function == other->function && kernel->shape == other->shape && kernel->parameters == other->parameters &&
           hasSameAttributes(*kernel, *other);
  if (auto* alloc = std::get_if<AllocWork>(&a)) return alloc->memory == std::get<AllocWork>(b).memory;
  if (auto* free = std::get_if<FreeWork>(&a)) return free->memory == std::get<FreeWork>(b).memory;
  return std::holds_alternative<ConditionalWork>(a);  // the contents of its bodies are steps of their own
}

// Whether conditions, types and numbers of bodies are equal: the contents of the bodies are steps of their own.
bool isSameConditional(const NodeWork& a, const NodeWork& b) {
  auto &one = std::get<ConditionalWork>(a), &other = std::get<ConditionalWork>(b);
  return one.condition == other.condition && one.type == other.type && one.bodies.size() == other.bodies.size();
}

// Which changes of a copy the driver accepts (cuGraphExecMemcpyNodeSetParams): for rows everything but the memory types as the program
// declared them; for other boxes nothing. If the type is unified, it even accepts pageable memory in place of device memory, and then
// faults when the GPU reads it: refused here.
bool isLikeCopy(const CopyWork& now, const CopyWork& wanted) {
  auto isLikeEnd = [](CUmemorytype given, CUmemorytype otherGiven, Where where, Where other) {
    const bool isOnHost = where != Where::device, isOtherOnHost = other != Where::device;
    const bool mayMove = given == CU_MEMORYTYPE_UNIFIED && where != Where::pageable && other != Where::pageable;
    return given == otherGiven && (isOnHost == isOtherOnHost || mayMove);
  };
  if (!isLikeEnd(now.given.dstMemoryType, wanted.given.dstMemoryType, now.toWhere, wanted.toWhere)) return false;
  if (!isLikeEnd(now.given.srcMemoryType, wanted.given.srcMemoryType, now.fromWhere, wanted.fromWhere)) return false;
  return now.size.isRow() ? wanted.size.isRow() : now.to == wanted.to && now.from == wanted.from && now.size == wanted.size;
}

// For rectangles only address and value may change (cuGraphExecUpdate).
bool isLikeFill(const CUDA_MEMSET_NODE_PARAMS& now, const CUDA_MEMSET_NODE_PARAMS& wanted) {
  if (now.height == 1) return wanted.height == 1;
  return now.width == wanted.width && now.height == wanted.height && now.pitch == wanted.pitch && now.elementSize == wanted.elementSize;
}

// Attributes that the driver cannot change; an attribute that is not set counts as 0.
bool hasSameFixedAttributes(const KernelWork& a, const KernelWork& b, uint64_t flags) {
  auto value = [](const KernelWork& work, CUlaunchAttributeID id) {
    auto* found = findAttribute(work.attributes, id);
    return found == nullptr ? CUlaunchAttributeValue{} : found->value;
  };
  auto isSameIn = [&](CUlaunchAttributeID id, auto CUlaunchAttributeValue::*member) { return value(a, id).*member == value(b, id).*member; };
  const bool hasPriorities = (flags & CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY) != 0;
  return a.shape.cooperative == b.shape.cooperative &&
         isSameIn(CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING, &CUlaunchAttributeValue::nvlinkUtilCentricScheduling) &&
         (!hasPriorities || isSameIn(CU_LAUNCH_ATTRIBUTE_PRIORITY, &CUlaunchAttributeValue::priority));
}

}  // namespace

Executable::Step* Executable::findStep(uint64_t node) {
  auto found = byNode.find(node);
  return found == byNode.end() ? nullptr : &shape.steps[found->second];
}

const NodeWork* Executable::findWork(uint64_t node) {
  Step* step = findStep(node);
  return step == nullptr ? nullptr : &step->work;
}

// Source: cuda.h: the owning context of a kernel's function cannot change.
bool Executable::hasSameContext(const NodeWork& a, const NodeWork& b) const {
  auto contextOf = [&](const NodeWork& work) -> uint64_t {
    auto* kernel = std::get_if<KernelWork>(&work);
    auto* function = kernel == nullptr ? nullptr : session.handles.find<api::Kind::FUNCTION>(kernel->function);
    return function == nullptr ? 0 : function->layout->context;
  };
  const uint64_t now = contextOf(a), wanted = contextOf(b);
  return now == wanted || now == 0 || wanted == 0;  // a function that has ended has no context
}

// The conditions that cuda.h states for each cuGraphExec…SetParams.
CUresult Executable::check(const Step& step, const NodeWork& work) const {
  if (typeOf(step.work) != typeOf(work) || !hasSameContext(step.work, work)) return CUDA_ERROR_INVALID_VALUE;
  const uint32_t may = devicesNamed(session, step.work) | 1u << step.device;
  if ((devicesNamed(session, work) & ~may) != 0) return CUDA_ERROR_INVALID_VALUE;
  if (isRecord(work) && devicesNamed(session, work) != devicesNamed(session, step.work)) return CUDA_ERROR_INVALID_VALUE;
  bool isLike = !std::holds_alternative<LibraryWork>(work) || isSame(step.work, work);
  if (auto* copy = std::get_if<CopyWork>(&work)) {
    auto& now = std::get<CopyWork>(step.work);
    isLike = isLikeCopy(now, *copy) && isInSameKind(session.graphMemories, now, *copy);
  } else if (auto* fill = std::get_if<FillWork>(&work)) {
    isLike = isLikeFill(std::get<FillWork>(step.work).given, fill->given);
  } else if (auto* words = std::get_if<MemOpsWork>(&work)) {
    auto& now = std::get<MemOpsWork>(step.work).operations;
    isLike = std::ranges::equal(now, words->operations, [](auto& a, auto& b) { return a.operation == b.operation; });
  }
  return isLike ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult Executable::set(Thread& thread, uint64_t node, const NodeWork& work) {
  Step* step = findStep(node);
  if (step == nullptr || typeOf(step->work) != typeOf(work)) return CUDA_ERROR_INVALID_VALUE;
  if (isMemory(work)) return CUDA_ERROR_NOT_SUPPORTED;
  if (CUresult bad = check(*step, work)) return bad;
  auto* copy = std::get_if<CopyWork>(&work);
  if (!mayName(session.graphMemories, copy == nullptr ? fillsGraph : ownGraph, work)) return CUDA_ERROR_INVALID_VALUE;
  const Change change{numberOf(*step), work, step->enabled};
  if (step->place.step != Place::none && (runsOnHost(work) || std::holds_alternative<EventWork>(work))) return CUDA_ERROR_NOT_SUPPORTED;
  const bool isNoChange = copy != nullptr && isSame(step->work, work);  // a kernel node is set anyway: kernels may have updated it
  Problem problem;
  return isNoChange ? CUDA_SUCCESS : apply(thread, {change}, problem);
}

CUgraphExecUpdateResult Executable::compare(const Step& step, const NodeWork& wanted) const {
  auto *kernel = std::get_if<KernelWork>(&step.work), *other = std::get_if<KernelWork>(&wanted);
  const bool isInBody = step.place.step != Place::none;
  if (isInBody && (runsOnHost(wanted) || std::holds_alternative<EventWork>(wanted))) return CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED;
  if (step.work.index() != wanted.index()) return CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED;  // a library call counts like a child graph
  if (std::holds_alternative<ConditionalWork>(wanted) && !isSameConditional(step.work, wanted)) return CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED;
  if (kernel != nullptr && !hasSameContext(step.work, wanted)) return CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE;
  if (kernel != nullptr && !hasSameFixedAttributes(*kernel, *other, wantedFlags)) return CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED;
  if (check(step, wanted) != CUDA_SUCCESS) return CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
  // The driver checks a fill as if it alone were set, but accepts copies of the other graph's own memory.
  const bool isFill = std::holds_alternative<FillWork>(wanted);
  return isFill && !mayName(session.graphMemories, fillsGraph, wanted) ? CU_GRAPH_EXEC_UPDATE_ERROR : CU_GRAPH_EXEC_UPDATE_SUCCESS;
}

namespace {

// The driver keeps a kernel's cluster size if the new node does not set one.
NodeWork withClusters(const NodeWork& wanted, const NodeWork& now) {
  NodeWork work = wanted;
  auto* kernel = std::get_if<KernelWork>(&work);
  auto* kept = kernel == nullptr ? nullptr : findAttribute(std::get<KernelWork>(now).attributes, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
  if (kept != nullptr && findAttribute(kernel->attributes, kept->id) == nullptr) kernel->attributes.push_back(*kept);
  return work;
}

}  // namespace

// Collects the changes; all are checked before anything is changed.
CUresult Executable::changesOf(const std::vector<OutlinePair>& pairs, std::vector<Change>& changes, Problem& problem) const {
  for (auto& [now, wanted] : pairs) {
    auto found = byNode.find(now);
    if (found == byNode.end()) continue;  // a child node: the nodes in it have pairs of their own
    const Step& step = shape.steps[found->second];
    const NodeWork& work = session.graphs.findNode(wanted)->work;
    problem.update = compare(step, work);
    problem.node = wanted;
    if (problem.update != CU_GRAPH_EXEC_UPDATE_SUCCESS) return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
    NodeWork taken = withClusters(work, step.work);
    if (!isSame(step.work, taken)) changes.push_back({found->second, std::move(taken), step.enabled, wanted});
  }
  problem.node = 0;
  return CUDA_SUCCESS;
}

CUresult Executable::replace(Thread& thread, const std::optional<OutlineProblem>& unlike, const std::vector<OutlinePair>& pairs, Problem& problem) {
  if (unlike) {
    problem.update = unlike->result, problem.node = unlike->node, problem.from = unlike->from;
    return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
  }
  std::vector<Change> changes;
  if (CUresult refused = changesOf(pairs, changes, problem)) return refused;
  if (CUresult error = apply(thread, changes, problem))
    return problem.update == CU_GRAPH_EXEC_UPDATE_SUCCESS ? error : CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
  noteMemory();
  return CUDA_SUCCESS;
}

// Memory of an allocation node can be in only one executable graph at a time.
bool Executable::mayHaveMemory(const Graph& graph) const {
  return std::ranges::none_of(graph.all(), [&](auto& node) {
    auto* alloc = std::get_if<AllocWork>(&node->work);
    return alloc != nullptr && alloc->memory->isInstantiated && std::ranges::find(allocated, alloc->memory) == allocated.end();
  });
}

void Executable::noteMemory() {
  if (!hasMemory()) return;
  for (auto& memory : allocated) memory->isInstantiated = false;
  allocated.clear(), freed.clear();
  for (auto& step : shape.steps) {
    if (auto* alloc = std::get_if<AllocWork>(&step.work)) allocated.push_back(alloc->memory);
    if (auto* free = std::get_if<FreeWork>(&step.work)) freed.push_back(free->memory);
  }
  for (auto& memory : allocated) memory->isInstantiated = true;
}

CUresult Executable::update(Thread& thread, const Graph& graph, Problem& problem) {
  problem.update = CU_GRAPH_EXEC_UPDATE_SUCCESS;  // as the driver reports for unsupported updates
  if (graph.isMoved || !deviceNodes.empty() || hasDeviceNodes(graph) || !mayHaveMemory(graph)) return CUDA_ERROR_NOT_SUPPORTED;
  std::vector<OutlinePair> pairs;
  const auto unlike = pairByEdges(outline, Outline(graph), pairs);
  if (!unlike && conditions.size() != graph.conditions->all().size()) {
    problem.update = CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED;
    return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
  }
  auto wanted = graph.conditions->all();
  hasNewConditions = !unlike && conditions != wanted;
  std::swap(conditions, wanted);
  KJ_DEFER(hasNewConditions = false);
  KJ_ON_SCOPE_FAILURE(conditions = std::move(wanted));
  CUresult result = replace(thread, unlike, pairs, problem);
  if (result != CUDA_SUCCESS) return conditions = std::move(wanted), result;
  fillsGraph = graph.conditions;
  replaceHeld(graph, 0, pairs);
  return CUDA_SUCCESS;
}

CUresult Executable::setChild(Thread& thread, uint64_t node, const Graph& child) {
  const Outline* now = outline.findChild(node);
  if (now == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::vector<OutlinePair> pairs;
  Problem problem;
  if (CUresult refused = replace(thread, pairByOrder(*now, Outline(child), pairs), pairs, problem)) return refused;
  replaceHeld(child, node, pairs);
  return CUDA_SUCCESS;
}

namespace {

bool mayBeDisabled(const NodeWork& work) {
  const CUgraphNodeType type = typeOf(work);
  return type == CU_GRAPH_NODE_TYPE_KERNEL || type == CU_GRAPH_NODE_TYPE_MEMCPY || type == CU_GRAPH_NODE_TYPE_MEMSET;
}

}  // namespace

CUresult Executable::setEnabled(Thread& thread, uint64_t node, bool enabled) {
  Step* found = findStep(node);
  if (found == nullptr || !mayBeDisabled(found->work)) return CUDA_ERROR_INVALID_VALUE;
  Step& step = *found;
  if (step.enabled == enabled) return CUDA_SUCCESS;
  if (hasEnded(step)) return CUDA_ERROR_UNKNOWN;
  if (step.place.step != Place::none) return remake(thread, {{numberOf(step), step.work, enabled}});
  HostFunctions::Made made;
  if (step.function) made = HostFunctions::made(functionOf(step, enabled));
  if (CUresult error = sendEnabled(thread, step, enabled)) return error;
  step.enabled = enabled;
  if (step.function) session.hostFunctions[device].change(*step.function, std::move(made));
  return CUDA_SUCCESS;
}

// Enables or disables only the driver's copy: the host function does nothing then (functionOf).
CUresult Executable::sendEnabled(Thread& thread, const Step& step, bool enabled) {
  auto* copy = std::get_if<CopyWork>(&step.work);
  const CopyForm form = copy == nullptr ? CopyForm::onDevice : formOf(*copy);
  if (form == CopyForm::inProgram) return CUDA_SUCCESS;
  if (CUresult error = follow(thread, device)) return error;
  Call<api::Cuda::GraphEnableParams> frame(thread.of(handle), api::Method::graphEnable);
  frame->setGraph(handle);
  frame->setNode(form == CopyForm::fromProgram ? step.last : step.first);
  frame->setEnabled(enabled);
  return frame.post();
}

const bool* Executable::findEnabled(uint64_t node) const {
  auto found = byNode.find(node);
  if (found == byNode.end()) return nullptr;
  const Step& step = shape.steps[found->second];
  return mayBeDisabled(step.work) ? &step.enabled : nullptr;
}

}  // namespace vgpu::client
