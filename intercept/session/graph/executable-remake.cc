// Changes of steps: in the worker's graph, or by making a new worker's graph if the present one lacks the nodes, cannot lose some, or has
// the step in a conditional node's body, which cannot be changed. The program's handle stays; the worker's new graph has another.
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

// The driver changes a kernel node's attributes only by a new graph. It changes a copy in place if both ends stay on the device or on the
// host: the worker tells it these kinds, even if the program declared an end as unified.
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

// Only the driver knows whether it accepts another function (cuda.h, cuGraphExecKernelNodeSetParams). So functions are changed first, and
// changed back if one is refused.
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

// Whether the kernel's module has been unloaded since: a driver may crash if it is asked to change such a node.
bool Executable::hasEnded(const Step& step) const {
  auto* kernel = std::get_if<KernelWork>(&step.work);
  return kernel != nullptr && session.handles.find<api::Kind::FUNCTION>(kernel->function) == nullptr;
}

CUresult Executable::apply(Thread& thread, const std::vector<Change>& changes, Problem& problem) {
  std::vector<const Change*> others;  // changes other than of functions
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
    if (isMemory(step.work)) continue;  // the worker's node for it does nothing
    if (CUresult error = prepare(thread, step)) return error;
    if (CUresult error = sendSet(thread, step)) return error;
  }
  return CUDA_SUCCESS;
}

// The state before an attempt, including the program's functions, to which takeBack() returns if the attempt fails.
struct Executable::Before {
  uint64_t handle;
  std::vector<Step> steps;
  std::vector<uint32_t> hosts, records;
  std::vector<HostFunctions::Made> functions;
};

// Launches of one executable graph are ordered, so a launch of the new worker's graph must wait for the last launch of the old one.
CUresult Executable::remake(Thread& thread, const std::vector<Change>& changes) {
  if (address != 0 || !deviceNodes.empty()) return CUDA_ERROR_NOT_SUPPORTED;  // kernels know its address or its nodes'
  StreamFence behind = before;
  if (lastSequence != 0) {
    InContext ofLaunches(thread, session.primaryContext(device));  // the legacy stream, if it was used, is that of this context
    CUresult fenced = fenceStream(thread, lastStream, behind);
    if (fenced != CUDA_SUCCESS) fenced = awaitDevice(thread, device);  // no fence is possible, e.g. the stream has ended: wait for all work
    if (fenced != CUDA_SUCCESS) return fenced;
  }
  Before was{handle, shape.steps, hosts, records, {}};
  for (auto& step : shape.steps)
    was.functions.push_back(step.function ? HostFunctions::made(functionOf(step, step.enabled)) : HostFunctions::Made{});
  replaced.reserve(replaced.size() + 2 * shape.steps.size());
  const uint64_t made = session.handles.reserve(api::Kind::GRAPH_EXEC, device);  // not an object of the program's
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

// Restores the steps: no launch has used what they were given meanwhile. Ends the worker's graph of the failed attempt.
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
