#include "intercept/session/graph/executable.h"

#include <algorithm>
#include <cstring>

#include "intercept/session/call.h"
#include "intercept/session/graph/device-node.h"
#include "intercept/session/graph/owned-memory.h"
#include "intercept/session/graph/staging.h"
#include "intercept/session/graph/step-frames.h"
#include "intercept/session/ring-order.h"
#include "intercept/session/wait.h"

namespace vgpu::client {

namespace {

// The most frames of a recipe (vgpu/objects/record-format.h), less those that are not nodes.
constexpr size_t mostWorkerNodes = 65000;

void copyRuns(const CopyEnd& memory, const BoxSize& size, std::byte* packed, bool toMemory) {
  forRuns(memory, size, [&](std::byte* at, uint64_t offset, uint64_t bytes) {
    toMemory ? std::memcpy(at, packed + offset, bytes) : std::memcpy(packed + offset, at, bytes);
  });
}

// Copies row by row between the program's own addresses.
void copyOnHost(const CopyWork& work) {
  for (uint64_t slice = 0; slice < work.size.depth; ++slice)
    for (uint64_t row = 0; row < work.size.height; ++row)
      std::memmove(fromWire<void*>(work.to.addressOf(0, row, slice)), fromWire<void*>(work.from.addressOf(0, row, slice)),
                   work.size.width);
}

}  // namespace

CUresult Executable::instantiate(Thread& thread, const Graph& graph, uint64_t flags, uint64_t& handle, Problem& problem) {
  Shape shape;
  unsigned device = 0;
  if (!flatten(graph, shape)) {
    problem.instantiate = CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE;
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (graph.isBody || graph.isMoved) return CUDA_ERROR_NOT_SUPPORTED;
  if (!std::ranges::all_of(graph.conditions->all(), &Condition::isUsed)) {
    problem.instantiate = CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED;
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (CUresult refused = checkBodies(shape, problem)) return refused;
  // Memory may have become another graph's own since a node was added.
  auto isRefused = [&](const Step& step) { return !mayName(thread.session.graphMemories, graph.conditions, step.work); };
  if (std::ranges::any_of(shape.steps, isRefused)) return CUDA_ERROR_INVALID_VALUE;
  const bool hasConditions = !graph.conditions->all().empty();
  if (hasConditions && graph.conditions->isClaimed()) return CUDA_ERROR_NOT_SUPPORTED;
  uint32_t devices = 0;
  if (CUresult error = placeSteps(thread, shape, device, devices, problem)) return error;
  if (shape.steps.size() > mostWorkerNodes / 2) return CUDA_ERROR_OUT_OF_MEMORY;
  const bool isLaunchable = (flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) != 0;
  if (isLaunchable)
    if (CUresult refused = checkLaunchable(shape, flags, devices, problem)) return refused;

  Session& session = thread.session;
  uint64_t made = session.handles.create(api::Kind::GRAPH_EXEC, device, thread.owner());
  std::shared_ptr<Executable> executable(new Executable(thread, graph, device));
  executable->handle = made;
  executable->wantedFlags = flags;
  executable->devices = devices;
  if (hasConditions) executable->claimsConditions = graph.conditions->claim();
  executable->conditions = graph.conditions->all();
  executable->shape = std::move(shape);
  executable->hold(graph, 0, {});
  session.handles.find<api::Kind::GRAPH_EXEC>(made)->executable = executable;

  auto make = [&]() -> CUresult {
    for (auto& step : executable->shape.steps) {
      problem.node = step.node;
      if (CUresult error = executable->claim(step)) return error;
    }
    return executable->sendGraph(thread, problem);
  };
  if (CUresult error = make()) {
    end(thread, made);
    return error;
  }
  handle = isLaunchable ? executable->address : made;
  return CUDA_SUCCESS;
}

CUresult Executable::sendGraph(Thread& thread, Problem& problem) {
  if (CUresult error = orderBehindAll(thread, device, devices & ~(1u << device))) return error;
  if (CUresult error = follow(thread, device)) return error;
  if (CUresult error = sendBegin(thread, handle)) return error;
  isBegun = true;
  if (CUresult error = sendConditions(thread, handle, conditions)) return error;
  if (CUresult error = sendSteps(thread, problem)) return error;
  if (CUresult error = follow(thread, device)) return error;
  Call<api::Cuda::GraphInstantiateParams> frame(thread.on(device), api::Method::graphInstantiate);
  frame->setGraph(handle);
  frame->setFlags(wantedFlags);
  if (CUresult error = frame.call()) return error;
  auto results = frame.results<api::Cuda::GraphInstantiateResults>();
  if (results.getResult() == CUDA_SUCCESS) return nameByAddress(results.getAddress()), CUDA_SUCCESS;
  if ((wantedFlags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) != 0) problem = problemAt(results.getNode(), results.getProblem());
  return static_cast<CUresult>(results.getResult());
}

// Kernels know the graph by an address of the driver's, so the program's handle is that address.
void Executable::nameByAddress(uint64_t given) {
  address = given;
  if (address != 0) session.launchableGraphs.add(address, handle);
}

// Converts the driver's report about one of the worker's nodes.
Executable::Problem Executable::problemAt(uint32_t node, uint32_t why) const {
  Problem problem{.instantiate = static_cast<CUgraphInstantiateResult>(why)};
  for (auto& step : shape.steps)
    if (step.first <= node && node <= step.last) problem.node = step.node;
  return problem;
}

std::shared_ptr<Executable> Executable::find(Thread& thread, uint64_t handle) {
  auto* state = thread.session.handles.find<api::Kind::GRAPH_EXEC>(thread.session.launchableGraphs.resolve(handle));
  return state == nullptr ? nullptr : state->executable;
}

CUresult Executable::end(Thread& thread, uint64_t handle) {
  std::shared_ptr<Executable> executable;
  handle = thread.session.launchableGraphs.resolve(handle);
  auto last = [&](GraphExecState& state) { executable = std::move(state.executable); };
  if (!thread.session.handles.destroy<api::Kind::GRAPH_EXEC>(handle, last)) return CUDA_ERROR_INVALID_VALUE;
  if (executable == nullptr) return sendEnd(thread, handle);  // a holder of a DeviceNode
  thread.session.launchableGraphs.remove(executable->address);
  executable->follow(thread, executable->device);  // fails only if the session is lost; then the frame fails too
  CUresult result = executable->isBegun ? sendEnd(thread, executable->handle) : CUDA_SUCCESS;
  if (executable->handle != handle) thread.session.handles.abandon(executable->handle);
  for (uint64_t stream : executable->streams)
    if (stream != 0) thread.destroyStream(stream);
  for (auto& step : executable->shape.steps) executable->release(step);
  executable->giveUp(std::move(executable->shape.held));
  for (auto& memory : executable->allocated) memory->isInstantiated = false;
  for (auto& node : executable->deviceNodes) node->isInstantiated = false;
  for (auto& staging : executable->replaced) thread.session.memory.freeBehind(thread, staging->address, executable->lastLaunch);
  return result;
}

bool Executable::holdsAnything() const {
  return hasMemory() || !shape.held.empty() || !replaced.empty() || recordsElsewhere() ||
         std::ranges::any_of(hosts, [&](uint32_t i) { return shape.steps[i].staging != nullptr; });
}

void Executable::hold(const Graph& graph, uint64_t ofChild, const std::vector<OutlinePair>& pairs) {
  if (!graph.held.isEmpty()) shape.held[ofChild].addAll(graph.held);
  for (auto& node : graph.all()) {
    if (auto* child = std::get_if<ChildWork>(&node->work)) {
      auto pair = std::ranges::find(pairs, node->handle, &OutlinePair::wanted);
      hold(*child->graph, pair == pairs.end() ? node->handle : pair->now, pairs);
    }
    if (auto* conditional = std::get_if<ConditionalWork>(&node->work))
      for (auto& body : conditional->bodies) hold(*body, ofChild, pairs);
  }
}

// The pairs include the nodes of all children.
void Executable::replaceHeld(const Graph& graph, uint64_t ofChild, const std::vector<OutlinePair>& pairs) {
  Held before;
  before.insert(shape.held.extract(ofChild));
  for (auto& pair : pairs) before.insert(shape.held.extract(pair.now));
  hold(graph, ofChild, pairs);
  giveUp(std::move(before));
}

// User objects' destructors are the program's code; they run when launches no longer use the objects.
void Executable::giveUp(Held given) {
  if (given.empty() || isPast(session, lastLaunch)) return;
  auto last = std::make_shared<Held>(std::move(given));
  const auto& [sequence, word] = lastLaunch.record;
  auto drop = [last](CUresult) mutable { last.reset(); };
  session.hostFunctions[device].add(word, sequence, drop, HostFunctions::OnFault::dropped, HostFunctions::Word::kept);
}

// The GPU still writes the last launch's number into the word, which the program answers, before the word is reused.
void Executable::release(Step& step) {
  if (step.function) session.hostFunctions[device].end(*step.function);
  if (step.word) session.completionWords.give(*step.word, wordDevice(step), step.number);
  if (step.staging) replaced.push_back(std::move(step.staging));
  step.function.reset();
  step.word.reset();
  step.staging.reset();
}

// Memory that the graph allocates must be free at the launch. It may free memory allocated by itself or by an earlier launch.
CUresult Executable::takeMemory() {
  GraphMemories& memories = session.graphMemories;
  const bool freesFirst = (wantedFlags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH) != 0;
  for (auto& memory : allocated)
    if (memories.isAllocated(*memory) && !freesFirst) return CUDA_ERROR_INVALID_VALUE;
  for (auto& memory : allocated) memories.allocate(memory);
  for (auto& memory : freed) memories.free(memory->address);
  return CUDA_SUCCESS;
}

CUresult Executable::launch(Thread& thread, uint64_t stream) {
  if (hasMemory())
    if (CUresult refused = takeMemory()) return refused;
  if (CUresult error = follow(thread, device)) return error;
  const uint32_t others = (devices | 1u << thread.deviceOf(stream)) & ~(1u << device);
  return others == 0 ? launchHere(thread, stream) : launchAcross(thread, stream, others);
}

template <typename Frame>
CUresult Executable::sendLaunch(Thread& thread, Frame& frame, uint64_t stream) {
  frame->setGraph(handle);
  frame.setStream(stream);
  lastSequence = frame.sequence();
  for (uint32_t i : hosts) {
    shape.steps[i].number = lastSequence;
    shape.steps[i].function->expect(lastSequence);
  }
  if (!hosts.empty()) session.hostFunctions[device].launched();
  for (uint32_t i : records) {
    Step& step = shape.steps[i];
    if (wordDevice(step) == device) step.number = lastSequence;
    auto* event = session.handles.find<api::Kind::EVENT>(std::get<EventWork>(step.work).event);
    if (event == nullptr) continue;
    event->stream.store(stream, std::memory_order_relaxed);
    event->record.set(&thread, {step.number, *step.word});
  }
  return frame.post();
}

CUresult Executable::launchHere(Thread& thread, uint64_t stream) {
  if (session.output.isExpected()) [[unlikely]] session.output.deliverWaiting(thread);
  if (before.record.sequence != 0) [[unlikely]]
    if (CUresult error = awaitBefore(thread, stream)) return error;
  lastStream = stream;
  if (holdsAnything()) return launchFenced(thread, stream);
  Call<api::Cuda::GraphLaunchParams> frame(thread.of(stream), api::Method::graphLaunch);
  return sendLaunch(thread, frame, stream);
}

// Launches of one executable graph are ordered, so the fence of the last one is after all of them.
CUresult Executable::launchFenced(Thread& thread, uint64_t stream) {
  StreamCompletion* completion = findCompletion(thread, stream);
  if (completion == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  CUresult result = CUDA_SUCCESS;
  auto word = completion->take(session.completionWords, thread.deviceOf(stream));
  auto send = [&](auto& frame) {
    frame->setLine(*word);
    completion->expect(&thread, frame.sequence());
    lastLaunch = {frame.device(), {frame.sequence(), *word}};
    return sendLaunch(thread, frame, stream);
  };
  if (recordsElsewhere()) {
    if (!word) return CUDA_ERROR_OUT_OF_MEMORY;
    std::vector<uint32_t> lines;
    std::vector<uint64_t> numbers;
    if (CUresult error = numberRecords(thread, lines, numbers)) return error;
    const size_t words = dataWords(lines.size() * sizeof lines[0]) + dataWords(numbers.size() * sizeof numbers[0]);
    Call<api::Cuda::GraphLaunchNumberedParams> frame(thread.of(stream), api::Method::graphLaunchNumbered, words);
    frame->setLines(kj::arrayPtr(lines.data(), lines.size()));
    frame->setNumbers(kj::arrayPtr(numbers.data(), numbers.size()));
    result = send(frame);
  } else if (word) {
    Call<api::Cuda::GraphLaunchFencedParams> frame(thread.of(stream), api::Method::graphLaunchFenced);
    result = send(frame);
  } else {
    Call<api::Cuda::GraphLaunchParams> frame(thread.of(stream), api::Method::graphLaunch);
    result = sendLaunch(thread, frame, stream);
    if (result == CUDA_SUCCESS) result = awaitDevice(thread, device);  // without a fence its end would not be known
  }
  for (auto* memories : {&allocated, &freed})
    for (auto& memory : *memories) session.graphMemories.used(*memory, lastLaunch);
  return result;
}

// The part of a step that the program's process does at each launch.
std::function<void()> Executable::functionOf(const Step& step, bool enabled) {
  if (!enabled) return {};
  if (auto* host = std::get_if<HostWork>(&step.work))
    return [&session = session, given = host->given] {
      session.managed.runInStream(session, [given] { given.fn(given.userData); });
    };
  auto& copy = std::get<CopyWork>(step.work);
  if (formOf(copy) == CopyForm::inProgram) return [copy] { copyOnHost(copy); };
  const bool out = formOf(copy) == CopyForm::toProgram;
  return [memory = out ? copy.to : copy.from, size = copy.size, packed = fromWire<std::byte*>(step.staging->address), out] {
    copyRuns(memory, size, packed, out);
  };
}

CUresult Executable::upload(Thread& thread, uint64_t stream) {
  if (CUresult error = follow(thread, device)) return error;
  if (thread.deviceOf(stream) != device) stream = streamOn(thread, device);
  Call<api::Cuda::GraphUploadParams> frame(thread.of(stream), api::Method::graphUpload);
  frame->setGraph(handle);
  frame.setStream(stream);
  return frame.post();
}

}  // namespace vgpu::client
