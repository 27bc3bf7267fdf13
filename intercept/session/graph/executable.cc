#include "intercept/session/graph/executable.h"

#include <algorithm>
#include <cstring>

#include "intercept/session/call.h"
#include "intercept/session/failure.h"
#include "intercept/session/graph/step-frames.h"
#include "intercept/session/ring-order.h"
#include "intercept/session/wait.h"

namespace vgpu::client {

namespace {

// As many frames as a recipe may have (vgpu/objects/record-format.h), less what is not a node.
constexpr size_t mostWorkerNodes = 65000;

bool isPageable(const CopyWork& copy) { return copy.toWhere == Where::pageable || copy.fromWhere == Where::pageable; }

// Whether the program's process does a part of it at each launch.
bool runsOnHost(const NodeWork& work) {
  auto* copy = std::get_if<CopyWork>(&work);
  return std::holds_alternative<HostWork>(work) || (copy != nullptr && isPageable(*copy));
}
bool isRecord(const NodeWork& work) {
  auto* event = std::get_if<EventWork>(&work);
  return event != nullptr && !event->waits;
}

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

void copyRuns(const CopyEnd& memory, const BoxSize& size, std::byte* packed, bool toMemory) {
  forRuns(memory, size, [&](std::byte* at, uint64_t offset, uint64_t bytes) {
    toMemory ? std::memcpy(at, packed + offset, bytes) : std::memcpy(packed + offset, at, bytes);
  });
}

// As one copies between the program's own places: row by row.
void copyOnHost(const CopyWork& work) {
  for (uint64_t slice = 0; slice < work.size.depth; ++slice)
    for (uint64_t row = 0; row < work.size.height; ++row)
      std::memmove(fromWire<void*>(work.to.addressOf(0, row, slice)), fromWire<void*>(work.from.addressOf(0, row, slice)),
                   work.size.width);
}

}  // namespace

// One for each copy: a launch begins when the one before it has ended, so two launches never use it at one time.
class Executable::Staging {
 public:
  static CUresult make(Thread& thread, uint64_t bytes, std::shared_ptr<Staging>& made) {
    Memory& memory = thread.session.memory;
    uint64_t address = 0;
    if (!memory.mayShareHost()) return refuse();
    if (CUresult error = memory.allocateHost(thread, bytes, 0, HostKind::staging, address)) return error;
    if (!memory.isShared(address)) {
      memory.freeHost(thread, address);
      return refuse();
    }
    made = std::make_shared<Staging>(address, bytes);
    return CUDA_SUCCESS;
  }
  Staging(uint64_t address, uint64_t bytes) : address(address), bytes(bytes) {}
  const uint64_t address, bytes;

 private:
  // The function would write what the GPU has, while it waits.
  static CUresult refuse() {
    reportFailure("a graph that copies pageable memory needs a GPU on the program's host; give it memory of cudaMallocHost");
    return CUDA_ERROR_NOT_SUPPORTED;
  }
};

// Sends the frames of one step.
class Executable::Sender {
 public:
  Sender(Thread& thread, Executable& graph, const Step& step, std::vector<uint32_t> before, bool isSet)
      : thread(thread), graph(graph), step(step), before(std::move(before)), isSet(isSet), next(step.first) {}

  CUresult operator()(const EmptyWork&) { return sendWords(thread, node(), OwnWords::none); }
  CUresult operator()(const KernelWork& work) { return sendKernel(thread, node(), work); }
  CUresult operator()(const FillWork& work) { return sendFill(thread, node(), work); }
  CUresult operator()(const MemOpsWork& work) { return sendMemOps(thread, node(), work); }
  CUresult operator()(const LibraryWork& work) { return sendCaptured(thread, node(), work); }
  CUresult operator()(const HostWork&) { return sendHost(); }
  CUresult operator()(const EventWork& work) {
    if (!work.waits) {  // the number first (docs/ring.md)
      const WorkerNode words = node();
      if (CUresult error = isSet ? CUDA_SUCCESS : sendWords(thread, words, OwnWords::signals, *step.word)) return error;
    }
    return sendEvent(thread, node(), work);
  }
  CUresult operator()(const CopyWork& work) {
    if (!isPageable(work)) return sendCopy(thread, node(), work.to, work.from, work.size);
    bool in = work.fromWhere == Where::pageable, out = work.toWhere == Where::pageable;
    if (in && out) return sendHost();
    const CopyEnd staging = CopyEnd::memory(step.staging->address, work.size.width, work.size.width * work.size.height);
    if (in)
      if (CUresult error = sendHost()) return error;
    if (CUresult error = sendCopy(thread, node(), out ? staging : work.to, in ? staging : work.from, work.size)) return error;
    return out ? sendHost() : CUDA_SUCCESS;
  }
  CUresult operator()(const AllocWork&) { return sendWords(thread, node(), OwnWords::none); }
  CUresult operator()(const FreeWork&) { return sendWords(thread, node(), OwnWords::none); }
  CUresult operator()(const ConditionalWork& work) { return sendConditional(thread, node(), work); }
  CUresult operator()(const ChildWork&) { return CUDA_SUCCESS; }  // its steps are the executable graph's own

  // How many of the worker's nodes there were.
  uint32_t sent() const { return next; }

 private:
  // Its word is the same as long as the graph lives.
  CUresult sendHost() {
    const WorkerNode words = node(graph.device);
    return isSet ? CUDA_SUCCESS : sendWords(thread, words, OwnWords::signalsAndWaits, *step.word);
  }
  // The first comes behind what the step does, each other one behind that.
  WorkerNode node() { return node(step.device); }
  WorkerNode node(unsigned device) {
    graph.follow(thread, device);  // only a lost session refuses it, and then the node's frame too
    WorkerNode made{graph.handle, next++, isSet ? std::vector<uint32_t>{} : std::move(before), isSet, device};
    before = {made.number};
    return made;
  }

  Thread& thread;
  Executable& graph;
  const Step& step;
  std::vector<uint32_t> before;
  const bool isSet;
  uint32_t next;
};

// Appends a graph's steps, those without dependencies behind `entry`. `last`: those that nothing of the graph comes behind. False
// if there is a cycle.
bool Executable::flatten(const Graph& graph, const std::vector<uint32_t>& entry, const Place& place, Shape& shape,
                         std::vector<uint32_t>& last) {
  auto ordered = graph.ordered();
  if (ordered.size() != graph.all().size()) return false;
  shape.held.addAll(graph.held);
  std::unordered_map<const GraphNode*, std::vector<uint32_t>> ends;  // the steps that finish a node
  std::unordered_map<const GraphNode*, bool> isAwaited;
  for (GraphNode* node : ordered) {
    std::vector<uint32_t> before = node->before.empty() ? entry : std::vector<uint32_t>{};
    for (auto& edge : node->before) {
      isAwaited[edge.from] = true;
      before.insert(before.end(), ends[edge.from].begin(), ends[edge.from].end());
    }
    std::ranges::sort(before);
    before.erase(std::unique(before.begin(), before.end()), before.end());
    if (auto* child = std::get_if<ChildWork>(&node->work)) {
      size_t begin = shape.steps.size();
      if (!flatten(*child->graph, before, place, shape, ends[node])) return false;
      if (ends[node].empty()) ends[node] = before;
      shape.children[node->handle] = {begin, shape.steps.size()};
      continue;
    }
    const auto number = static_cast<uint32_t>(shape.steps.size());
    shape.steps.push_back({node->handle, node->work, std::move(before), true, 0, 0, {}, nullptr, place});
    ends[node] = {number};
    if (auto* conditional = std::get_if<ConditionalWork>(&node->work)) {
      auto& ofStep = std::get<ConditionalWork>(shape.steps.back().work);
      for (auto& body : ofStep.bodies) body.reset();  // they end with the graph's node: only their number is kept
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

// The node, or one in a body of one.
bool Executable::isConditional(const Step& step) {
  return step.place.step != Place::none || std::holds_alternative<ConditionalWork>(step.work);
}

// cuda.h, CUDA_CONDITIONAL_NODE_PARAMS: bodies have no work of the host's, and no events.
CUresult Executable::checkBodies(const Shape& shape, Problem& problem) {
  for (auto& step : shape.steps) {
    if (step.place.step == Place::none || !(runsOnHost(step.work) || std::holds_alternative<EventWork>(step.work))) continue;
    problem.node = step.node;
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  return CUDA_SUCCESS;
}

// What a step needs besides the worker's nodes.
CUresult Executable::prepare(Thread& thread, Step& step) {
  if (!step.word && (runsOnHost(step.work) || isRecord(step.work))) {
    step.word = session.completionWords.take(device);
    if (!step.word) return CUDA_ERROR_OUT_OF_MEMORY;
    // A relay to another host asks after the words that are not 0 when the session comes to it; no frame will name this one again.
    uint64_t unused = 0;
    session.segment.completionWord(*step.word).answered.compare_exchange_strong(unused, 1);
  }
  auto* copy = std::get_if<CopyWork>(&step.work);
  if (copy == nullptr || !isPageable(*copy) || copy->toWhere == copy->fromWhere) return CUDA_SUCCESS;
  if (step.staging && step.staging->bytes >= copy->size.bytes()) return CUDA_SUCCESS;
  if (step.staging) replaced.push_back(step.staging);
  return Staging::make(thread, copy->size.bytes(), step.staging);
}

CUresult Executable::instantiate(Thread& thread, const Graph& graph, uint64_t flags, uint64_t& handle, Problem& problem) {
  Shape shape;
  unsigned device = 0;
  if (!flatten(graph, shape)) {
    problem.instantiate = CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE;
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (graph.isBody) return CUDA_ERROR_NOT_SUPPORTED;
  if (!std::ranges::all_of(graph.conditions->all(), &Condition::isUsed)) {
    problem.instantiate = CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED;
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (CUresult refused = checkBodies(shape, problem)) return refused;
  const bool hasConditions = !graph.conditions->all().empty();
  if (hasConditions && graph.conditions->isClaimed()) return CUDA_ERROR_NOT_SUPPORTED;
  uint32_t devices = 0;
  if (CUresult error = placeSteps(thread, shape, device, devices, problem)) return error;
  if (shape.steps.size() > mostWorkerNodes / 2) return CUDA_ERROR_OUT_OF_MEMORY;

  Session& session = thread.session;
  uint64_t made = session.handles.create(api::Kind::GRAPH_EXEC, device, thread.owner());
  std::shared_ptr<Executable> executable(new Executable(thread, device));
  executable->handle = made;
  executable->wantedFlags = flags;
  executable->devices = devices;
  if (hasConditions) executable->claimsConditions = graph.conditions->claim();
  executable->shape = std::move(shape);
  session.handles.find<api::Kind::GRAPH_EXEC>(made)->executable = executable;

  auto send = [&]() -> CUresult {
    if (CUresult error = orderBehindAll(thread, device, devices & ~(1u << device))) return error;
    {
      Call<api::Cuda::GraphBeginParams> frame(thread.on(device), api::Method::graphBegin);
      frame->setGraph(made);
      if (CUresult error = frame.post()) return error;
    }
    if (CUresult error = sendConditions(thread, made, graph.conditions->all())) return error;
    if (CUresult error = executable->sendSteps(thread, problem)) return error;
    if (CUresult error = executable->follow(thread, device)) return error;
    Call<api::Cuda::GraphInstantiateParams> frame(thread.on(device), api::Method::graphInstantiate);
    frame->setGraph(made);
    frame->setFlags(flags);
    if (CUresult error = frame.call()) return error;
    return static_cast<CUresult>(frame.results<api::Cuda::GraphInstantiateResults>().getResult());
  };
  if (CUresult error = send()) {
    end(thread, made);
    return error;
  }
  handle = made;
  return CUDA_SUCCESS;
}

CUresult Executable::sendSteps(Thread& thread, Problem& problem) {
  uint32_t sent = 0;
  Place place;
  for (uint32_t i = 0; i < shape.steps.size(); ++i) {
    Step& step = shape.steps[i];
    problem.node = step.node;
    if (step.place != place) {
      place = step.place;
      const bool isInside = place.step != Place::none;
      const WorkerBody body = isInside ? WorkerBody{shape.steps[place.step].first, place.body} : WorkerBody{};
      if (CUresult error = sendBody(thread, handle, body)) return error;
    }
    if (CUresult error = sendStep(thread, i, sent)) return error;
  }
  problem.node = 0;
  return CUDA_SUCCESS;
}

CUresult Executable::sendStep(Thread& thread, uint32_t number, uint32_t& sent) {
  Step& step = shape.steps[number];
  step.first = sent;
  if (CUresult error = prepare(thread, step)) return error;
  std::vector<uint32_t> before;
  for (uint32_t other : step.before) before.push_back(shape.steps[other].last);
  Sender sender(thread, *this, step, std::move(before), false);
  if (CUresult error = std::visit(sender, step.work)) return error;
  sent = sender.sent();
  step.last = sent - 1;
  byNode[step.node] = number;
  if (runsOnHost(step.work)) hosts.push_back(number);
  if (isRecord(step.work)) records.push_back(number);
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

std::shared_ptr<Executable> Executable::find(Thread& thread, uint64_t handle) {
  auto* state = thread.session.handles.find<api::Kind::GRAPH_EXEC>(handle);
  return state == nullptr ? nullptr : state->executable;
}

CUresult Executable::end(Thread& thread, uint64_t handle) {
  std::shared_ptr<Executable> executable;
  auto last = [&](GraphExecState& state) { executable = std::move(state.executable); };
  if (!thread.session.handles.destroy<api::Kind::GRAPH_EXEC>(handle, last)) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = executable->follow(thread, executable->device);
  {
    Call<api::Cuda::GraphEndParams> frame(thread.of(handle), api::Method::graphEnd);
    frame->setGraph(handle);
    result = frame.post();
  }
  for (uint64_t stream : executable->streams)
    if (stream != 0) thread.destroyStream(stream);
  executable->giveWords();
  executable->giveObjects();
  for (auto& memory : executable->allocated) memory->isInstantiated = false;
  for (auto& step : executable->shape.steps)
    if (step.staging) executable->replaced.push_back(step.staging);
  for (auto& staging : executable->replaced) thread.session.memory.freeBehind(thread, staging->address, executable->lastLaunch);
  return result;
}

bool Executable::holdsAnything() const {
  return hasMemory() || !shape.held.isEmpty() || !replaced.empty() ||
         std::ranges::any_of(hosts, [&](uint32_t i) { return shape.steps[i].staging != nullptr; });
}

// Launches run one after the other, so the last one's fence is behind all.
CUresult Executable::fenceLaunch(Thread& thread, uint64_t stream) {
  CUresult result = fenceStream(thread, stream, lastLaunch);
  if (result == CUDA_ERROR_OUT_OF_MEMORY) result = awaitDevice(thread, device);  // nobody would know when it has ended
  for (auto* memories : {&allocated, &freed})
    for (auto& memory : *memories) session.graphMemories.used(*memory, lastLaunch);
  return result;
}

// Their functions are the program's, and run when launches do not use them any more.
void Executable::giveObjects() {
  if (shape.held.isEmpty() || isPast(session, lastLaunch)) return;
  auto held = std::make_shared<UserReferences>(std::move(shape.held));
  const auto& [sequence, word] = lastLaunch.record;
  session.hostFunctions.add(
      word, device, sequence, [held]() mutable { held.reset(); }, HostFunctions::Word::kept);
}

// The GPU writes the number of the last launch into each, and then the program answers, before the word is used again.
void Executable::giveWords() {
  for (auto& step : shape.steps)
    if (step.word) session.completionWords.give(*step.word, device, lastSequence);
}

// What the graph allocates must be free. What it frees it has allocated itself, or another launch before.
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

CUresult Executable::launchHere(Thread& thread, uint64_t stream) {
  if (session.output.isExpected()) [[unlikely]] session.output.deliverWaiting(thread);
  Call<api::Cuda::GraphLaunchParams> frame(thread.of(stream), api::Method::graphLaunch);
  frame->setGraph(handle);
  frame.setStream(stream);
  lastSequence = frame.sequence();
  for (uint32_t i : hosts) {
    const Step& step = shape.steps[i];
    std::function<void()> run;
    if (auto* host = std::get_if<HostWork>(&step.work)) {
      run = [&session = session, given = host->given] {
        session.managed.runInStream(session, [given] { given.fn(given.userData); });
      };
    } else if (auto& copy = std::get<CopyWork>(step.work); step.staging == nullptr || copy.toWhere == copy.fromWhere) {
      run = [copy] { copyOnHost(copy); };
    } else {
      bool out = copy.toWhere == Where::pageable;
      run = [memory = out ? copy.to : copy.from, size = copy.size, packed = fromWire<std::byte*>(step.staging->address), out] {
        copyRuns(memory, size, packed, out);
      };
    }
    session.hostFunctions.add(*step.word, device, lastSequence, std::move(run), HostFunctions::Word::kept);
  }
  for (uint32_t i : records) {
    const Step& step = shape.steps[i];
    auto* event = session.handles.find<api::Kind::EVENT>(std::get<EventWork>(step.work).event);
    if (event == nullptr) continue;
    event->stream.store(stream, std::memory_order_relaxed);
    event->record.set({lastSequence, *step.word});
  }
  CUresult result = frame.post();
  return result == CUDA_SUCCESS && holdsAnything() ? fenceLaunch(thread, stream) : result;
}

CUresult Executable::upload(Thread& thread, uint64_t stream) {
  if (CUresult error = follow(thread, device)) return error;
  if (thread.deviceOf(stream) != device) stream = streamOn(thread, device);
  Call<api::Cuda::GraphUploadParams> frame(thread.of(stream), api::Method::graphUpload);
  frame->setGraph(handle);
  frame.setStream(stream);
  return frame.post();
}

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

CUresult Executable::apply(Thread& thread, Step& step, const NodeWork& work) {
  step.work = work;
  if (CUresult error = prepare(thread, step)) return error;
  return std::visit(Sender(thread, *this, step, {}, true), step.work);
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
      if (now.place != wanted.place || now.before != wanted.before || !isUnchanged(now.work, wanted.work))
        return refuse(CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED, i);
      continue;
    }
    if (typeOf(now.work) != typeOf(wanted.work)) return refuse(CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED, i);
    // What comes before the whole of a child graph is not its own.
    std::vector<uint32_t> own;
    for (uint32_t before : now.before)
      if (before >= begin) own.push_back(static_cast<uint32_t>(before - begin));
    if (own != wanted.before) return refuse(CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, i);
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
