// Changes of steps: set in the worker's graph, or by a new graph of the worker's if that one has no such nodes, cannot lose some, or
// cannot have what is in its conditional nodes' bodies set. The program's handle stays; the worker's graph has another one then.
#include <utility>

#include "intercept/session/call.h"
#include "intercept/session/graph/executable.h"
#include "intercept/session/graph/staging.h"
#include "intercept/session/graph/step-frames.h"
#include "intercept/session/ring-order.h"
#include "intercept/session/wait.h"

namespace vgpu::client {

bool Executable::isInPlace(const Step& step, const NodeWork& work) {
  auto* copy = std::get_if<CopyWork>(&work);
  return step.place.step == Place::none && (copy == nullptr || formOf(*copy) == formOf(std::get<CopyWork>(step.work)));
}

CUresult Executable::apply(Thread& thread, const std::vector<Change>& changes) {
  bool areInPlace = !hasNewConditions;
  for (auto& change : changes) areInPlace = areInPlace && isInPlace(shape.steps[change.step], change.work);
  if (!areInPlace) return remake(thread, changes);
  for (auto& change : changes) {
    Step& step = shape.steps[change.step];
    step.work = change.work;
    if (CUresult error = prepare(thread, step)) return error;
    if (CUresult error = sendSet(thread, step)) return error;
  }
  return CUDA_SUCCESS;
}

// Launches of one graph run one after the other, and so do those of the two graphs of the worker's.
CUresult Executable::remake(Thread& thread, const std::vector<Change>& changes) {
  if (address != 0 || !deviceNodes.empty()) return CUDA_ERROR_NOT_SUPPORTED;  // kernels know it, or its nodes, by their addresses
  StreamFence behind = before;
  if (lastSequence != 0) {
    CUresult fenced = fenceStream(thread, lastStream, behind);
    if (fenced != CUDA_SUCCESS) fenced = awaitDevice(thread, device);  // the stream has ended: nobody would know when that launch has
    if (fenced != CUDA_SUCCESS) return fenced;
  }
  const auto steps = shape.steps;
  const auto ofHost = hosts, ofRecords = records;
  const uint64_t replacedHandle = handle;
  for (auto& change : changes) shape.steps[change.step].work = change.work;
  handle = session.handles.create(api::Kind::GRAPH_EXEC, device, thread.owner());
  Problem problem;
  CUresult result = sendGraph(thread, problem);
  for (auto& step : shape.steps)
    if (result == CUDA_SUCCESS && !step.enabled && step.place.step == Place::none) result = sendEnabled(thread, step);
  const uint64_t ended = result == CUDA_SUCCESS ? replacedHandle : std::exchange(handle, replacedHandle);
  sendEnd(thread, ended);
  if (result != CUDA_SUCCESS) {
    takeBack(steps);
    hosts = ofHost, records = ofRecords;
    return result;
  }
  before = behind;
  for (auto& step : shape.steps)
    if (!runsOnHost(step.work) && !isRecord(step.work)) release(step);
  return CUDA_SUCCESS;
}

// The steps are again as they were: what they have been given since is of no launch.
void Executable::takeBack(const std::vector<Step>& steps) {
  for (size_t i = 0; i < steps.size(); ++i) {
    Step& tried = shape.steps[i];
    const Step& was = steps[i];
    if (tried.function && !was.function) session.hostFunctions.end(*tried.function);
    if (tried.word && !was.word) session.completionWords.give(*tried.word, device);
    if (tried.staging && tried.staging != was.staging) replaced.push_back(tried.staging);
    if (was.staging) std::erase(replaced, was.staging);
    tried = was;
    if (was.function) session.hostFunctions.change(*was.function, functionOf(was));
  }
}

CUresult Executable::awaitBefore(Thread& thread, uint64_t stream) {
  const StreamFence fence = std::exchange(before, {});
  return isPast(session, fence) ? CUDA_SUCCESS : awaitFence(thread, stream, fence);
}

}  // namespace vgpu::client
