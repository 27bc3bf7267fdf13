// Folding: successive frames of one stream are launched as one executable graph (docs/folding.md).
//
// Belongs to the thread of that GPU while it consumes its ring. It reads ahead, and keeps for each stream the work that it has read and not
// issued: the stream's run. A run is issued when it is long enough, when the ring has no further frame, and before any frame that no graph
// node expresses. A frame is released from the ring only when it and all before it are issued, so a suspend keeps nothing of this.
//
// How runs of several streams keep CUDA's order: a wait for an event is executed alone, after the run with the event's record has been
// issued. So no run depends on work that comes after it, and runs of different streams may be issued in any order. The legacy default
// stream synchronizes implicitly with other streams: while it has a run, no other stream has one.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <optional>
#include <unordered_map>
#include <vector>

#include "stub/gpu/run-lengths.h"
#include "stub/worker/execution.h"
#include "stub/worker/folding-frames.h"
#include "vgpu/wire/ring.h"

namespace vgpu::stub {

class Folding {
 public:
  // `execute` executes a single frame.
  using Execute = std::function<void(const Frame&)>;
  Folding(Execution& on, RingReader& reader, Execute execute) : on(on), reader(reader), execute(std::move(execute)) {}

  // Call for the first frame after the ring was empty: an idle GPU gets that frame at once.
  void begin();
  // Whether a frame is folded even if it finds the GPU idle.
  bool isForced() const { return mode == FoldMode::ALWAYS; }
  // Whether reading ahead from `frame` is worthwhile. Costs a few loads if it is not.
  bool mayFold(const Frame& frame) const {
    return mode != FoldMode::OFF && foldableOf(frame.method) != Foldable::NO && isFollowed(frame) && !hasReferences();
  }
  // Issues `frame` and frames after it. Returns the position before which all frames are issued now: that of `frame` if it must be executed
  // alone.
  uint64_t issue(const Frame& frame, const std::atomic<bool>& stop);

 private:
  // Work of a stream that has been read and not issued, in order. The frames include fences.
  struct Run {
    uint64_t stream = 0;
    size_t target = 0;    // amount of work at which it is issued
    uint64_t opened = 0;  // value of framesRead at the run's start
    RunLengths* lengths = nullptr;  // the stream's
    std::vector<FoldedWork> work;
    std::vector<Frame> frames;
    void clear() { work.clear(), frames.clear(); }
  };
  using Runs = std::list<Run>;

  bool isFollowed(const Frame& frame) const;
  // A kernel launch uses the present binding of a texture or surface reference; a graph node would keep the old one.
  bool hasReferences() const {
    return !on.handles.of(api::Kind::TEXTURE_REFERENCE).empty() || !on.handles.of(api::Kind::SURFACE_REFERENCE).empty();
  }
  std::optional<Frame> frameAfter(const Frame& frame, const std::atomic<bool>& stop);
  bool take(const Frame& frame);
  void takeWait(const Frame& frame);
  void takeFence(const Frame& frame);
  bool takeWork(const Frame& frame);

  Runs::iterator find(uint64_t stream);
  Runs::iterator open(uint64_t stream);
  void forgetStreams();
  void makeOrder(uint64_t stream);
  void issueRecordOf(uint64_t event, uint64_t exceptIn);
  void issueOld();
  void issueAll();
  void close(Runs::iterator run);
  void issueParts(Run& run);
  bool launch(Run& run, FoldedRun work, std::span<const Frame> frames);
  void noteLaunched(const Run& run, FoldedRun work);
  void executeFences(std::span<const Frame> frames);
  size_t least() const;
  size_t partOf(size_t work) const;

  Execution& on;
  RingReader& reader;
  const Execute execute;
  FoldMode mode = FoldMode::AUTO;
  size_t growing = 0;  // largest run for now: small after the ring was empty, so that the GPU soon has work
  uint64_t framesRead = 0;
  Runs runs, spare;  // in the order in which they were opened; spare: cleared, to reuse their memory
  std::unordered_map<uint64_t, RunLengths> lengths;  // by stream
};

}  // namespace vgpu::stub
