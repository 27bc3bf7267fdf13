// A session without daemon, worker and GPU, for tests that must see or refuse its frames. A thread consumes the frames in order, replies to
// those that are waited for, and does what a program sees of a GPU's work: a launch of a graph writes its number to the completion words of
// the graph's nodes. There is one per process, and it does not end.
#pragma once

#include <atomic>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "../scratch-directory.h"
#include "cuda-frames.h"
#include "intercept/session/control.h"
#include "intercept/session/given-files.h"
#include "intercept/session/session.h"
#include "intercept/session/thread.h"
#include "vgpu/api/effects.h"
#include "vgpu/wire/ring.h"

namespace vgpu::client {

class FakeControl final : public Control {
 public:
  ~FakeControl() noexcept override {}
  void leave() override {}
  const MemoryFile& segment() const override { return ofSegment; }
  const MemoryFile& hostArena() const override { return ofHost; }
  const std::string& session() const override { return id; }
  const std::string& directory() const override { return folder(); }
  void serve(SessionControl&) override {}
  std::string renew() override { return "there is no other worker"; }
  GivenFiles& files() override { return given; }

 private:
  static const std::string& folder() {
    static test::ScratchDirectory scratch;  // removed when the process ends
    return scratch.path;
  }
  MemoryFile ofSegment = Segment::create(), ofHost = MemoryFile::create("host arena", hostArenaBytes);
  std::string id = "fake";
  GivenFiles given;
};

class FakeSession {
 public:
  static FakeSession& one() {
    static FakeSession& made = *new FakeSession;
    return made;
  }
  Session& session;
  Thread& thread() { return Thread::current(session); }

  // Sets the result of calls of that method from now on.
  void answer(api::Method method, CUresult result) {
    std::lock_guard lock(mutex);
    answers[method] = result;
  }
  // From now on, the copy back number `which` is refused at once, as a worker does; the copies around it stay pending until a stream is
  // waited for.
  void refuseCopyBack(unsigned which, CUresult result) {
    std::lock_guard lock(mutex);
    refusedCopy = which;
    refusal = result;
  }
  // How many frames of that method there have been, after all frames sent so far are consumed.
  size_t count(api::Method method) {
    awaitAll();
    std::lock_guard lock(mutex);
    return counts[method];
  }
  // The worker's number of the graph that was launched last, after the program has answered all its nodes.
  uint64_t launched() {
    awaitAll();
    std::lock_guard lock(mutex);
    for (uint32_t word : waiting[lastLaunched]) {
      const CompletionWord& completion = session.segment.completionWord(word);
      while (completion.answered.load() != completion.done.load()) std::this_thread::yield();
    }
    return lastLaunched;
  }
  // The source address of the last copy that was added to a graph.
  uint64_t copiedFrom() {
    awaitAll();
    std::lock_guard lock(mutex);
    return lastFrom;
  }

 private:
  FakeSession() : session(*new Session(std::make_unique<FakeControl>())) {
    std::thread([this] { serve(); }).detach();
    session.start();
    thread().makeCurrent(session.primaryContext(0));
  }
  void awaitAll() {
    const uint64_t sent = session.segment.ring(0).head.load();
    while (taken.load() < sent) std::this_thread::yield();
  }
  void serve() {
    for (RingReader reader(session.segment, 0);;) {
      const uint32_t bell = reader.bell();
      if (auto frame = reader.next()) {
        execute(*frame);
        reader.release();
        taken.store(reader.position());
      } else {
        reader.sleep(bell, 1'000'000'000);
      }
    }
  }
  void execute(const Frame& frame) {
    std::lock_guard lock(mutex);
    ++counts[frame.method];
    if (frame.method == api::Method::graphMemOps) {
      api::FrameReader<api::Cuda::GraphMemOpsParams> own(frame.words);
      if (own.getOurs() == 2) waiting[own.getGraph()].push_back(own.getLine());
    } else if (frame.method == api::Method::graphCopy) {
      lastFrom = api::FrameReader<api::Cuda::GraphCopyParams>(frame.words).getFrom();
    } else if (frame.method == api::Method::graphLaunch) {
      launch(api::FrameReader<api::Cuda::GraphLaunchParams>(frame.words).getGraph(), frame.sequence());
    } else if (frame.method == api::Method::graphLaunchFenced) {
      launch(api::FrameReader<api::Cuda::GraphLaunchFencedParams>(frame.words).getGraph(), frame.sequence());
    }
    if (frame.method == api::Method::copy3dBack && refusedCopy != 0) return copyBack(frame);
    if (frame.method == api::Method::streamSynchronize) writePending();
    if (api::infoOf(frame.method).route != api::Route::POST) reply(frame);
  }
  void launch(uint64_t graph, uint64_t sequence) {
    lastLaunched = graph;
    for (uint32_t word : waiting[graph]) session.segment.completionWord(word).done.store(sequence);
  }
  void copyBack(const Frame& frame) {
    if (--refusedCopy != 0) return pending.push_back(frame);
    Slot& slot = session.segment.slot(frame.slot);
    slot.result = refusal;
    slot.done.store(frame.sequence());
  }
  // As the GPU does, which does not know that a later frame was refused.
  void writePending() {
    for (const Frame& copy : pending) session.segment.slot(copy.slot).done.store(copy.sequence());
    pending.clear();
  }
  void reply(const Frame& frame) {
    std::vector<capnp::word> message;
    if (frame.method == api::Method::describe) {
      api::FrameBuilder<api::Cuda::DescribeResults> results(message);
      results.setCount(1);
      results.initAttributes(CU_DEVICE_ATTRIBUTE_MAX);  // all 0
    }
    if (frame.method == api::Method::graphInstantiate)
      api::FrameBuilder<api::Cuda::GraphInstantiateResults>(message).setResult(answers[frame.method]);
    Slot& slot = session.segment.slot(frame.slot);
    if (!message.empty()) std::memcpy(session.segment.reply(frame.slot), message.data(), message.size() * sizeof(capnp::word));
    slot.replyWords = static_cast<uint32_t>(message.size());
    slot.result = CUDA_SUCCESS;
    slot.done.store(frame.sequence());
    slot.wakeups.fetch_add(1);
    wakeSleepers(session.segment.waking(), slot.wakeups);
  }

  std::atomic<uint64_t> taken{0};
  std::mutex mutex;  // guards all other members
  std::map<api::Method, CUresult> answers;
  std::map<api::Method, size_t> counts;
  std::map<uint64_t, std::vector<uint32_t>> waiting;  // completion words of nodes that wait for the program, by the worker's graph
  uint64_t lastLaunched = 0, lastFrom = 0;
  unsigned refusedCopy = 0;  // the copy back to refuse, counted down to 1; 0: none
  CUresult refusal = CUDA_SUCCESS;
  std::vector<Frame> pending;  // copies back that the GPU has not written; valid only in their header fields
};

}  // namespace vgpu::client
