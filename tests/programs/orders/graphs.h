// Captured graphs: instantiated, launched in several streams, updated, and destroyed with pending launches.
#pragma once

#include "work.h"

namespace orders {

inline cudaGraphExec_t instantiate(cudaGraph_t graph) {
  cudaGraphExec_t made;
  CHECK(cudaGraphInstantiate(&made, graph, 0));
  CHECK(cudaGraphDestroy(graph));
  return made;
}
inline void update(cudaGraphExec_t made, cudaGraph_t graph) {
  cudaGraphExecUpdateResultInfo result;
  CHECK(cudaGraphExecUpdate(made, graph, &result));
  CHECK(cudaGraphDestroy(graph));
}
// Destroys it at once, or later when there are more.
inline void endGraph(World& world, cudaGraphExec_t graph) {
  world.graphs.push_back(graph);
  const size_t kept = world.random.oneIn(2) ? 5 : 0;
  for (; world.graphs.size() > kept; world.graphs.pop_front()) CHECK(cudaGraphExecDestroy(world.graphs.front()));
}
// The stream itself, or any of its device: a graph can also be launched in the legacy default stream.
inline int pickLaunchStream(World& world, int stream) {
  return world.random.oneIn(2) ? stream : world.order.pickStreamOf(world.order.deviceOf(stream));
}
// A stream that can be captured: there is at least one.
inline int pickCapturable(World& world) {
  int stream;
  do stream = world.order.pickStream();
  while (!world.order.isCapturable(stream));
  return stream;
}

// ---- a sequence of work

inline bool isForGraph(const World& world, const Buffer* buffer, int stream) {
  return buffer == nullptr || world.isReached(*buffer, stream);
}
inline std::vector<Work> chooseSequence(World& world, int stream) {
  std::vector<Work> sequence;
  for (int left = 1 + world.random.pick(8); left > 0; --left) {
    Work work;
    if (!chooseWork(world, stream, work) || !work.kind->isCapturable) continue;
    if (isForGraph(world, work.to, stream) && isForGraph(world, work.from, stream)) sequence.push_back(work);
  }
  return sequence;
}
inline cudaGraph_t captureSequence(World& world, int stream, const std::vector<Work>& sequence) {
  const cudaStream_t handle = world.order.enter(stream);
  cudaGraph_t graph;
  CHECK(cudaStreamBeginCapture(handle, cudaStreamCaptureModeThreadLocal));
  for (auto& work : sequence) work.kind->issue(work, handle);
  CHECK(cudaStreamEndCapture(handle, &graph));
  return graph;
}
inline void launchSequence(World& world, int stream, cudaGraphExec_t graph, const std::vector<Work>& sequence) {
  for (auto& work : sequence) requireWork(world, stream, work);
  CHECK(cudaGraphLaunch(graph, world.order.enter(stream)));
  for (auto& work : sequence) work.kind->apply(work);
  const Moment moment = world.order.post(stream);
  for (auto& work : sequence) noteWork("graph of a sequence", work, moment);
}

// Changes that an update may make to a kernel and to a fill of one row (CUDA Runtime API, cudaGraphExecUpdate).
inline void changeNumbers(World& world, std::vector<Work>& sequence) {
  for (auto& work : sequence) {
    if (work.kind->issue == issueKernel) work.factor = world.random.pick(1000);
    if (work.kind->issue == issueFill) work.value = world.byte();
  }
}

inline void giveSequence(World& world, int) {
  const int stream = pickCapturable(world);
  std::vector<Work> sequence = chooseSequence(world, stream);
  const cudaGraphExec_t graph = instantiate(captureSequence(world, stream, sequence));
  launchSequence(world, stream, graph, sequence);
  for (int more = world.random.pick(4); more > 0; --more) {
    if (world.random.oneIn(3)) {
      changeNumbers(world, sequence);
      update(graph, captureSequence(world, stream, sequence));
    }
    launchSequence(world, pickLaunchStream(world, stream), graph, sequence);
    if (world.random.oneIn(3)) giveWork(world, world.order.pickStream());
  }
  endGraph(world, graph);
}

// ---- a fork and a join

// Two branches copy one buffer to two others: one of them sometimes through memory of the graph, the other followed by a fill of the first
// byte. Pageable memory may take part; a launch uses it in the order of its stream.
struct Branches {
  Buffer *from, *left, *right;
  bool hasMemory;
  Byte value;

  int leftBytes() const { return std::min(left->bytes, from->bytes); }
  int rightBytes() const { return std::min(right->bytes, from->bytes); }
  bool isFilled() const { return right->kind != Kind::pageable; }
};

inline void issueLeft(const Branches& branches, cudaStream_t stream) {
  const size_t bytes = branches.leftBytes();
  const Byte* from = branches.from->data;
  void* memory = nullptr;
  if (branches.hasMemory) {
    CHECK(cudaMallocAsync(&memory, bytes, stream));
    CHECK(cudaMemcpyAsync(memory, from, bytes, cudaMemcpyDefault, stream));
    CHECK(cudaMemcpyAsync(branches.left->data, memory, bytes, cudaMemcpyDefault, stream));
    CHECK(cudaFreeAsync(memory, stream));
  } else {
    CHECK(cudaMemcpyAsync(branches.left->data, from, bytes, cudaMemcpyDefault, stream));
  }
}
inline void issueRight(const Branches& branches, cudaStream_t stream) {
  CHECK(cudaMemcpyAsync(branches.right->data, branches.from->data, branches.rightBytes(), cudaMemcpyDefault, stream));
  if (branches.isFilled()) CHECK(cudaMemsetAsync(branches.right->data, branches.value, 1, stream));
}
inline cudaGraph_t captureBranches(World& world, int stream, const Branches& branches) {
  const cudaStream_t handle = world.order.enter(stream);
  cudaStream_t side;
  cudaEvent_t fork, join;
  CHECK(cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking));
  for (auto event : {&fork, &join}) CHECK(cudaEventCreateWithFlags(event, cudaEventDisableTiming));
  CHECK(cudaStreamBeginCapture(handle, cudaStreamCaptureModeThreadLocal));
  CHECK(cudaEventRecord(fork, handle));
  CHECK(cudaStreamWaitEvent(side, fork, 0));
  issueLeft(branches, handle);
  issueRight(branches, side);
  CHECK(cudaEventRecord(join, side));
  CHECK(cudaStreamWaitEvent(handle, join, 0));
  cudaGraph_t graph;
  CHECK(cudaStreamEndCapture(handle, &graph));
  for (auto event : {fork, join}) CHECK(cudaEventDestroy(event));
  CHECK(cudaStreamDestroy(side));
  return graph;
}
inline void launchBranches(World& world, int stream, cudaGraphExec_t graph, const Branches& branches) {
  auto& [from, left, right, hasMemory, value] = branches;
  if (from->kind == Kind::pageable) world.requireReadOfHost(*from);
  world.requireRead(stream, *from);
  for (auto to : {left, right}) {
    if (to->kind == Kind::pageable) world.requireWriteOfHost(*to);
    world.requireWrite(stream, *to);
  }
  CHECK(cudaGraphLaunch(graph, world.order.enter(stream)));
  std::memcpy(left->model.data(), from->model.data(), branches.leftBytes());
  std::memcpy(right->model.data(), from->model.data(), branches.rightBytes());
  if (branches.isFilled()) right->model[0] = value;
  const Moment moment = world.order.post(stream);
  from->noteRead("graph of branches", moment);
  for (auto to : {left, right}) to->noteWrite("graph of branches", moment);
}

inline void giveBranches(World& world, int) {
  const int stream = pickCapturable(world);
  Branches branches{};
  auto fits = [&](Buffer& buffer) {
    return &buffer != branches.from && &buffer != branches.left && (world.isReached(buffer, stream) || buffer.kind == Kind::pageable);
  };
  branches.from = world.find(fits);
  branches.left = world.find(fits);
  branches.right = world.find(fits);
  if (branches.from == nullptr || branches.left == nullptr || branches.right == nullptr) return;
  branches.hasMemory = world.random.oneIn(2);
  cudaGraphExec_t graph = nullptr;
  for (int round = 0; round < 2; ++round) {
    branches.value = world.byte();  // so that an update changes something
    const cudaGraph_t captured = captureBranches(world, stream, branches);
    if (graph != nullptr && !branches.hasMemory) {
      update(graph, captured);
    } else {  // a graph that allocates cannot be updated
      if (graph != nullptr) CHECK(cudaGraphExecDestroy(graph));
      graph = instantiate(captured);
    }
    for (int launch = 0; launch < 2; ++launch) launchBranches(world, pickLaunchStream(world, stream), graph, branches);
  }
  endGraph(world, graph);
}

}  // namespace orders
