// Changes of steps: set in the worker's graph, or by a new graph of the worker's if that one has no such nodes, cannot lose some, or
// cannot have what is in its conditional nodes' bodies set. The program's handle stays; the worker's graph has another one then.
#include <kj/common.h>
#include <kj/exception.h>

#include <algorithm>
#include <utility>

#include "intercept/session/call.h"
#include "intercept/session/graph/executable.h"
#include "intercept/session/graph/node-attributes.h"
#include "intercept/session/graph/staging.h"
#include "intercept/session/graph/step-frames.h"
#include "intercept/session/in-context.h"
#include "intercept/session/ring-order.h"
#include "intercept/session/wait.h"

namespace vgpu::client {

// Attributes of a kernel's node the driver exchanges with all nodes only. A copy it changes if both ends stay where they are, on the
// device or the host: what the program has given it as of any kind, the worker has given its own kind.
bool Executable::isInPlace(const Step& step, const NodeWork& work) {
  if (step.place.step != Place::none) return false;
  if (auto* copy = std::get_if<CopyWork>(&work)) {
    auto& was = std::get<CopyWork>(step.work);
    auto isSameSide = [](Where one, Where other) { return (one == Where::device) == (other == Where::device); };
    return formOf(*copy) == formOf(was) && isSameSide(copy->toWhere, was.toWhere) && isSameSide(copy->fromWhere, was.fromWhere);
  }
  auto *kernel = std::get_if<KernelWork>(&work), *now = std::get_if<KernelWork>(&step.work);
  return kernel == nullptr || hasSameAttributes(*kernel, *now);
}

bool Executable::hasOtherFunction(const Step& step, const NodeWork& work) {
  auto *kernel = std::get_if<KernelWork>(&work), *now = std::get_if<KernelWork>(&step.work);
  return kernel != nullptr && kernel->function != now->function;
}

// Whether the driver takes another function only it knows (cuda.h, cuGraphExecKernelNodeSetParams), so these are the first, and what has
// been changed by then is changed back.
CUresult Executable::changeFunctions(Thread& thread, const std::vector<Change>& changes, Problem& problem) {
  std::vector<std::pair<Step*, NodeWork>> done;
  for (auto& change : changes) {
    Step& step = shape.steps[change.step];
    if (!hasOtherFunction(step, change.work)) continue;
    Step wanted = step;
    wanted.work = change.work;
    const CUresult result = sendSet(thread, wanted, true);
    if (result == CUDA_SUCCESS) {
      done.push_back({&step, std::exchange(step.work, std::move(wanted.work))});
      continue;
    }
    for (auto& [changed, was] : done) {
      changed->work = std::move(was);
      sendSet(thread, *changed);
    }
    if (result == CUDA_ERROR_INVALID_VALUE) problem.update = CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE, problem.node = change.from;
    return result;
  }
  return CUDA_SUCCESS;
}

// Whether its kernel is of a module that has been unloaded since: a driver may crash when it is told to change such a node.
bool Executable::hasEnded(const Step& step) const {
  auto* kernel = std::get_if<KernelWork>(&step.work);
  return kernel != nullptr && session.handles.find<api::Kind::FUNCTION>(kernel->function) == nullptr;
}

CUresult Executable::apply(Thread& thread, const std::vector<Change>& changes, Problem& problem) {
  std::vector<const Change*> others;  // than of functions
  bool areInPlace = !hasNewConditions;
  for (auto& change : changes) {
    const Step& step = shape.steps[change.step];
    areInPlace = areInPlace && isInPlace(step, change.work) && !hasEnded(step);
    if (!hasOtherFunction(step, change.work)) others.push_back(&change);
  }
  if (!areInPlace) return remake(thread, changes);
  if (CUresult refused = changeFunctions(thread, changes, problem)) return refused;
  for (auto* change : others) {
    Step& step = shape.steps[change->step];
    step.work = change->work;
    if (isMemory(step.work)) continue;  // the worker's node does nothing
    if (CUresult error = prepare(thread, step)) return error;
    if (CUresult error = sendSet(thread, step)) return error;
  }
  return CUDA_SUCCESS;
}

// What there is before something is tried, and the functions of the program with which it goes on if that fails.
struct Executable::Before {
  uint64_t handle;
  std::vector<Step> steps;
  std::vector<uint32_t> hosts, records;
  std::vector<HostFunctions::Made> functions;
};

// Launches of one graph run one after the other, and so do those of the two graphs of the worker's.
CUresult Executable::remake(Thread& thread, const std::vector<Change>& changes) {
  if (address != 0 || !deviceNodes.empty()) return CUDA_ERROR_NOT_SUPPORTED;  // kernels know it, or its nodes, by their addresses
  StreamFence behind = before;
  if (lastSequence != 0) {
    InContext ofLaunches(thread, session.primaryContext(device));  // whose legacy stream it may be
    CUresult fenced = fenceStream(thread, lastStream, behind);
    if (fenced != CUDA_SUCCESS) fenced = awaitDevice(thread, device);  // the stream has ended: nobody would know when that launch has
    if (fenced != CUDA_SUCCESS) return fenced;
  }
  Before was{handle, shape.steps, hosts, records, {}};
  for (auto& step : shape.steps)
    was.functions.push_back(step.function ? HostFunctions::made(functionOf(step, step.enabled)) : HostFunctions::Made{});
  replaced.reserve(replaced.size() + 2 * shape.steps.size());
  const uint64_t made = session.handles.reserve(api::Kind::GRAPH_EXEC, device);  // no object of the program's
  CUresult result = CUDA_SUCCESS;
  {
    KJ_ON_SCOPE_FAILURE(takeBack(thread, was, made));
    isBegun = false;
    handle = made;
    for (auto& change : changes) shape.steps[change.step].work = change.work, shape.steps[change.step].enabled = change.enabled;
    Problem problem;
    result = sendGraph(thread, problem);
    for (auto& step : shape.steps)
      if (result == CUDA_SUCCESS && !step.enabled && step.place.step == Place::none) result = sendEnabled(thread, step, false);
    if (result == CUDA_SUCCESS) result = sendEnd(thread, was.handle);
  }
  if (result != CUDA_SUCCESS) return takeBack(thread, was, made), result;
  if (!session.handles.isLive(api::Kind::GRAPH_EXEC, was.handle)) session.handles.abandon(was.handle);
  before = behind;
  for (auto& step : shape.steps)
    if (!runsOnHost(step.work) && !isRecord(step.work)) release(step);
  return CUDA_SUCCESS;
}

// The steps are again as they were: what they have been given since is of no launch. Ends what the worker has of the graph that was tried.
void Executable::takeBack(Thread& thread, Before& was, uint64_t tried) {
  takeBack(was);
  if (std::exchange(isBegun, true)) sendEnd(thread, tried);
  session.handles.abandon(tried);
}

void Executable::takeBack(Before& was) noexcept {
  handle = was.handle;
  for (size_t i = 0; i < was.steps.size(); ++i) {
    Step &tried = shape.steps[i], &step = was.steps[i];
    if (tried.function && !step.function) session.hostFunctions[device].end(*tried.function);
    if (tried.word && !step.word) session.completionWords.give(*tried.word, device);
    if (tried.staging && tried.staging != step.staging) replaced.push_back(tried.staging);
    if (step.staging) std::erase(replaced, step.staging);
    if (step.function) session.hostFunctions[device].change(*step.function, std::move(was.functions[i]));
  }
  shape.steps.swap(was.steps);
  hosts.swap(was.hosts), records.swap(was.records);
}

CUresult Executable::awaitBefore(Thread& thread, uint64_t stream) {
  const StreamFence fence = std::exchange(before, {});
  return isPast(session, fence) ? CUDA_SUCCESS : awaitFence(thread, stream, fence);
}

}  // namespace vgpu::client
