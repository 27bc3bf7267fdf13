// Changes of an executable graph: of a node, of all nodes by another graph of the same shape, and nodes that are left out.
#include <algorithm>
#include <cstring>
#include <utility>

#include "intercept/session/call.h"
#include "intercept/session/graph/executable.h"
#include "intercept/session/graph/step-frames.h"

namespace vgpu::client {

namespace {

// Whether the worker has it so already.
bool isSame(const NodeWork& a, const NodeWork& b) {
  auto *library = std::get_if<LibraryWork>(&a), *otherLibrary = std::get_if<LibraryWork>(&b);
  if (library != nullptr && otherLibrary != nullptr) return library->call == otherLibrary->call;
  auto *copy = std::get_if<CopyWork>(&a), *otherCopy = std::get_if<CopyWork>(&b);
  if (copy != nullptr && otherCopy != nullptr)
    return copy->to == otherCopy->to && copy->from == otherCopy->from && copy->size == otherCopy->size;
  auto *kernel = std::get_if<KernelWork>(&a), *other = std::get_if<KernelWork>(&b);
  if (kernel == nullptr || other == nullptr) return false;
  return kernel->function == other->function && kernel->shape == other->shape &&
         kernel->parameters == other->parameters;
}

// The same conditions, types and numbers of bodies: what is in the bodies are steps of their own.
bool isSameConditional(const NodeWork& a, const NodeWork& b) {
  auto &one = std::get<ConditionalWork>(a), &other = std::get<ConditionalWork>(b);
  return one.condition == other.condition && one.type == other.type && one.bodies.size() == other.bodies.size();
}

bool isSameMemory(const NodeWork& a, const NodeWork& b) {
  if (auto* alloc = std::get_if<AllocWork>(&a)) return alloc->memory == std::get<AllocWork>(b).memory;
  return std::get<FreeWork>(a).memory == std::get<FreeWork>(b).memory;
}

// What the driver takes of a copy (cuGraphExecMemcpyNodeSetParams): of rows in memory all but the kind of their ends, as the program
// has given it, and whether an end is the device's or the host's; others as they are.
bool isLikeCopy(const CopyWork& now, const CopyWork& wanted) {
  auto isRow = [](const CopyWork& one) { return one.size.isRow() && !one.to.isArray() && !one.from.isArray(); };
  auto isHost = [](Where where) { return where != Where::device; };
  if (now.given.dstMemoryType != wanted.given.dstMemoryType || now.given.srcMemoryType != wanted.given.srcMemoryType) return false;
  if (isHost(now.toWhere) != isHost(wanted.toWhere) || isHost(now.fromWhere) != isHost(wanted.fromWhere)) return false;
  return isRow(now) ? isRow(wanted) : now.to == wanted.to && now.from == wanted.from && now.size == wanted.size;
}

// Of rectangles address and value (cuGraphExecUpdate).
bool isLikeFill(const CUDA_MEMSET_NODE_PARAMS& now, const CUDA_MEMSET_NODE_PARAMS& wanted) {
  if (now.height == 1) return wanted.height == 1;
  return now.width == wanted.width && now.height == wanted.height && now.pitch == wanted.pitch && now.elementSize == wanted.elementSize;
}

// Attributes are part of what was instantiated.
bool hasSameAttributes(const NodeWork& a, const NodeWork& b) {
  auto *kernel = std::get_if<KernelWork>(&a), *other = std::get_if<KernelWork>(&b);
  if (kernel == nullptr || other == nullptr) return true;
  if (kernel->shape.cooperative != other->shape.cooperative || kernel->attributes.size() != other->attributes.size()) return false;
  return std::ranges::all_of(kernel->attributes, [&](auto& each) {
    auto* found = findAttribute(other->attributes, each.id);
    return found != nullptr && std::memcmp(found, &each, sizeof each) == 0;
  });
}

}  // namespace

Executable::Step* Executable::findStep(uint64_t node) {
  auto found = byNode.find(node);
  return found == byNode.end() ? nullptr : &shape.steps[found->second];
}

// What cuda.h says of each cuGraphExec…SetParams.
CUresult Executable::check(const Step& step, const NodeWork& work) const {
  if (typeOf(step.work) != typeOf(work)) return CUDA_ERROR_INVALID_VALUE;
  const uint32_t may = devicesNamed(session, step.work) | 1u << step.device;
  if ((devicesNamed(session, work) & ~may) != 0) return CUDA_ERROR_INVALID_VALUE;
  bool isLike = !std::holds_alternative<LibraryWork>(work) || isSame(step.work, work);
  if (isMemory(work)) isLike = isSameMemory(step.work, work);
  if (std::holds_alternative<ConditionalWork>(work)) isLike = isSameConditional(step.work, work);
  if (auto* copy = std::get_if<CopyWork>(&work)) {
    isLike = isLikeCopy(std::get<CopyWork>(step.work), *copy);
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
  Change change{byNode[node], work};
  keepAttributes(change.work, step->work);
  if (step->place.step != Place::none && (runsOnHost(work) || std::holds_alternative<EventWork>(work))) return CUDA_ERROR_NOT_SUPPORTED;
  const bool isNoChange = std::holds_alternative<CopyWork>(work) && isSame(step->work, work);  // kernels may have changed a kernel's
  return isNoChange ? CUDA_SUCCESS : apply(thread, {change});
}

// All is checked before anything is changed.
CUresult Executable::replace(Thread& thread, size_t begin, size_t end, Shape& with, Problem& problem) {
  auto refuse = [&](CUgraphExecUpdateResult why, size_t at) {
    problem.update = why;
    if (at < with.steps.size()) problem.node = with.steps[at].node;
    return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
  };
  std::vector<Change> changes;
  for (size_t i = 0; i < std::max(with.steps.size(), end - begin); ++i) {
    if (i >= with.steps.size() || begin + i >= end) return refuse(CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, i);
    Step &now = shape.steps[begin + i], &wanted = with.steps[i];
    if (typeOf(now.work) != typeOf(wanted.work)) return refuse(CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED, i);
    // What comes before the whole of a child graph is not its own, nor is the body that it is in.
    std::vector<uint32_t> own;
    for (uint32_t before : now.before)
      if (before >= begin) own.push_back(static_cast<uint32_t>(before - begin));
    auto hasSamePorts = [&](auto& a, auto& b) { return a.from == begin + b.from && isSame(a.data, b.data); };
    const bool isThere = end - begin != shape.steps.size() || now.place == wanted.place;
    if (own != wanted.before || !isThere || !std::ranges::equal(now.ported, wanted.ported, hasSamePorts))
      return refuse(CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, i);
    if (!hasSameAttributes(now.work, wanted.work)) return refuse(CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED, i);
    if (check(now, wanted.work) != CUDA_SUCCESS) return refuse(CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED, i);
    const bool isFixed = isMemory(wanted.work) || std::holds_alternative<ConditionalWork>(wanted.work);
    if (!isFixed && !isSame(now.work, wanted.work)) changes.push_back({static_cast<uint32_t>(begin + i), wanted.work});
  }
  if (CUresult error = apply(thread, changes)) return error;
  problem.update = CU_GRAPH_EXEC_UPDATE_SUCCESS;
  return CUDA_SUCCESS;
}

CUresult Executable::update(Thread& thread, const Graph& graph, Problem& problem) {
  Shape fresh;
  if (!flatten(graph, fresh)) return CUDA_ERROR_INVALID_VALUE;
  if (hasDeviceNodes(shape) || hasDeviceNodes(fresh)) {
    problem.update = CU_GRAPH_EXEC_UPDATE_SUCCESS;  // as the driver says
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  if (checkBodies(fresh, problem) != CUDA_SUCCESS || conditions.size() != graph.conditions->all().size()) {
    problem.update = CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED;
    return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
  }
  auto now = std::exchange(conditions, graph.conditions->all());
  hasNewConditions = conditions != now;
  CUresult result = replace(thread, 0, shape.steps.size(), fresh, problem);
  if (result != CUDA_SUCCESS) conditions = std::move(now);
  hasNewConditions = false;
  return result;
}

CUresult Executable::setChild(Thread& thread, uint64_t node, const Graph& child) {
  auto found = shape.children.find(node);
  Shape fresh;
  Problem problem;
  if (found == shape.children.end() || !flatten(child, fresh)) return CUDA_ERROR_INVALID_VALUE;
  return replace(thread, found->second.begin, found->second.end, fresh, problem);
}

CUresult Executable::setEnabled(Thread& thread, uint64_t node, bool enabled) {
  if (findEnabled(node) == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Step& step = *findStep(node);
  if (step.enabled == enabled) return CUDA_SUCCESS;
  step.enabled = enabled;
  if (step.function) session.hostFunctions.change(*step.function, functionOf(step));
  const CUresult result = step.place.step == Place::none ? sendEnabled(thread, step) : remake(thread, {});
  if (result != CUDA_SUCCESS) step.enabled = !enabled;
  return result;
}

// The copy alone: the program's part does nothing then (functionOf).
CUresult Executable::sendEnabled(Thread& thread, const Step& step) {
  auto* copy = std::get_if<CopyWork>(&step.work);
  const CopyForm form = copy == nullptr ? CopyForm::onDevice : formOf(*copy);
  if (form == CopyForm::inProgram) return CUDA_SUCCESS;
  if (CUresult error = follow(thread, device)) return error;
  Call<api::Cuda::GraphEnableParams> frame(thread.of(handle), api::Method::graphEnable);
  frame->setGraph(handle);
  frame->setNode(form == CopyForm::fromProgram ? step.last : step.first);
  frame->setEnabled(step.enabled);
  return frame.post();
}

const bool* Executable::findEnabled(uint64_t node) const {
  auto found = byNode.find(node);
  if (found == byNode.end()) return nullptr;
  const Step& step = shape.steps[found->second];
  switch (typeOf(step.work)) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
    case CU_GRAPH_NODE_TYPE_MEMCPY:
    case CU_GRAPH_NODE_TYPE_MEMSET: return &step.enabled;
    default: return nullptr;
  }
}

}  // namespace vgpu::client
