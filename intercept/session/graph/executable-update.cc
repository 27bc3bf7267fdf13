// Changes of an executable graph: of a node, of all nodes by another graph of the same shape, and nodes that are left out.
#include <algorithm>
#include <cstring>

#include "intercept/session/call.h"
#include "intercept/session/graph/executable.h"
#include "intercept/session/graph/step-frames.h"

namespace vgpu::client {

namespace {

// Whether the worker has it so already.
bool isSame(const NodeWork& a, const NodeWork& b) {
  auto *library = std::get_if<LibraryWork>(&a), *otherLibrary = std::get_if<LibraryWork>(&b);
  if (library != nullptr && otherLibrary != nullptr) return library->call == otherLibrary->call;
  auto *kernel = std::get_if<KernelWork>(&a), *other = std::get_if<KernelWork>(&b);
  if (kernel == nullptr || other == nullptr) return false;
  return kernel->function == other->function && kernel->shape == other->shape &&
         kernel->parameters == other->parameters;
}

// Of a node that cannot be set: whether there is nothing to set.
bool isUnchanged(const NodeWork& a, const NodeWork& b) {
  auto equal = [](const auto& one, const auto& other) { return std::memcmp(&one, &other, sizeof one) == 0; };
  if (typeOf(a) != typeOf(b)) return false;
  if (auto* fill = std::get_if<FillWork>(&a)) return equal(fill->given, std::get<FillWork>(b).given);
  if (auto* copy = std::get_if<CopyWork>(&a)) return equal(copy->given, std::get<CopyWork>(b).given);
  if (auto* conditional = std::get_if<ConditionalWork>(&a)) {
    auto& other = std::get<ConditionalWork>(b);
    return conditional->condition == other.condition && conditional->type == other.type &&
           conditional->bodies.size() == other.bodies.size();
  }
  return std::holds_alternative<EmptyWork>(a) || isSame(a, b);
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
  bool isLike = !isMemory(work) && (!std::holds_alternative<LibraryWork>(work) || isSame(step.work, work));
  if (auto* copy = std::get_if<CopyWork>(&work)) {
    auto& now = std::get<CopyWork>(step.work);
    auto isRow = [](const CopyWork& one) { return one.size.isRow() && !one.to.isArray() && !one.from.isArray(); };
    isLike = isRow(now) && isRow(*copy) && now.toWhere == copy->toWhere && now.fromWhere == copy->fromWhere;
  } else if (auto* fill = std::get_if<FillWork>(&work)) {
    isLike = fill->given.height == 1 && std::get<FillWork>(step.work).given.height == 1;
  } else if (auto* words = std::get_if<MemOpsWork>(&work)) {
    auto& now = std::get<MemOpsWork>(step.work).operations;
    isLike = std::ranges::equal(now, words->operations, [](auto& a, auto& b) { return a.operation == b.operation; });
  }
  return isLike ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult Executable::set(Thread& thread, uint64_t node, const NodeWork& work) {
  Step* step = findStep(node);
  if (step == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (isConditional(*step)) return CUDA_ERROR_NOT_SUPPORTED;
  if (CUresult bad = check(*step, work)) return bad;
  NodeWork wanted = work;
  keepAttributes(wanted, step->work);
  return apply(thread, *step, wanted);
}

// All is checked before anything is changed.
CUresult Executable::replace(Thread& thread, size_t begin, size_t end, Shape& with, Problem& problem) {
  auto refuse = [&](CUgraphExecUpdateResult why, size_t at) {
    problem.update = why;
    if (at < with.steps.size()) problem.node = with.steps[at].node;
    return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
  };
  for (size_t i = 0; i < std::max(with.steps.size(), end - begin); ++i) {
    if (i >= with.steps.size() || begin + i >= end) return refuse(CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, i);
    Step &now = shape.steps[begin + i], &wanted = with.steps[i];
    if (isConditional(now) || isConditional(wanted)) {
      if (now.place != wanted.place || now.before != wanted.before || now.ported != wanted.ported || !isUnchanged(now.work, wanted.work))
        return refuse(CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED, i);
      continue;
    }
    if (typeOf(now.work) != typeOf(wanted.work)) return refuse(CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED, i);
    // What comes before the whole of a child graph is not its own.
    std::vector<uint32_t> own;
    for (uint32_t before : now.before)
      if (before >= begin) own.push_back(static_cast<uint32_t>(before - begin));
    auto hasSamePorts = [&](auto& a, auto& b) { return a.from == begin + b.from && isSame(a.data, b.data); };
    if (own != wanted.before || !std::ranges::equal(now.ported, wanted.ported, hasSamePorts)) return refuse(CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, i);
    if (!hasSameAttributes(now.work, wanted.work)) return refuse(CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED, i);
    if (check(now, wanted.work) != CUDA_SUCCESS) return refuse(CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED, i);
  }
  for (size_t i = 0; i < with.steps.size(); ++i)
    if (!isConditional(with.steps[i]) && !isSame(shape.steps[begin + i].work, with.steps[i].work))
      if (CUresult error = apply(thread, shape.steps[begin + i], with.steps[i].work)) return error;
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
  return replace(thread, 0, shape.steps.size(), fresh, problem);
}

CUresult Executable::setChild(Thread& thread, uint64_t node, const Graph& child) {
  auto found = shape.children.find(node);
  Shape fresh;
  Problem problem;
  if (found == shape.children.end() || !flatten(child, fresh)) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = replace(thread, found->second.begin, found->second.end, fresh, problem);
  return result == CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE ? CUDA_ERROR_INVALID_VALUE : result;
}

CUresult Executable::setEnabled(Thread& thread, uint64_t node, bool enabled) {
  if (findEnabled(node) == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Step& step = *findStep(node);
  if (step.enabled == enabled) return CUDA_SUCCESS;
  if (isConditional(step)) return CUDA_ERROR_NOT_SUPPORTED;
  // Its host functions would still run.
  auto* copy = std::get_if<CopyWork>(&step.work);
  if (copy != nullptr && isPageable(*copy)) return CUDA_ERROR_NOT_SUPPORTED;
  if (CUresult error = follow(thread, device)) return error;
  step.enabled = enabled;
  Call<api::Cuda::GraphEnableParams> frame(thread.of(handle), api::Method::graphEnable);
  frame->setGraph(handle);
  frame->setNode(step.first);
  frame->setEnabled(enabled);
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
