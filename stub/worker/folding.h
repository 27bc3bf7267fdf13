// Folding: frames of one stream that follow each other in the ring are launched as one executable graph (docs/folding.md).
//
// Belongs to the thread of that GPU while it consumes its ring. It reads ahead, and keeps for each stream the work that it has
// read and not issued: the stream's run. A run is issued when it is long enough, when the ring has no further frame, and before
// whatever is not a node of a graph. Frames are released from the ring when all before them are issued, so of this a suspend
// keeps nothing.
//
// The order that CUDA promises, across the runs of several streams: a wait for an event is executed alone, when the run with the
// event's record has been issued; so no run depends on work that comes after it, and runs of two streams may be issued in any
// order. The legacy default stream is ordered with other streams by their calls: nothing else is kept beside a run of it.
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
  // `execute` executes a frame alone.
  using Execute = std::function<void(const Frame&)>;
  Folding(Execution& on, RingReader& reader, Execute execute) : on(on), reader(reader), execute(std::move(execute)) {}

  // A frame has come after the ring was empty: an idle GPU gets it at once.
  void begin();
  // Whether also a frame that finds the GPU idle is folded.
  bool isForced() const { return mode == FoldMode::ALWAYS; }
  // Whether it is worth reading ahead from `frame`: a few loads, when it is not.
  bool mayFold(const Frame& frame) const {
    return mode != FoldMode::OFF && foldableOf(frame.method) != Foldable::NO && isFollowed(frame) && !hasReferences();
  }
  // Issues `frame` and frames behind it. The position before which all frames are issued now: that of `frame` if it must be
  // executed alone.
  uint64_t issue(const Frame& frame, const std::atomic<bool>& stop);

 private:
  // Work of a stream that has been read and not issued, in order. Frames hold fences too.
  struct Run {
    uint64_t stream = 0;
    size_t target = 0;    // of how much work it is issued
    uint64_t opened = 0;  // frames that had been read by then
    RunLengths* lengths = nullptr;  // the stream's
    std::vector<FoldedWork> work;
    std::vector<Frame> frames;
    void clear() { work.clear(), frames.clear(); }
  };
  using Runs = std::list<Run>;

  bool isFollowed(const Frame& frame) const;
  // What a reference is bound to counts for a kernel at its launch, and would stay as it was in a graph's node.
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
  size_t growing = 0;  // the longest run at first after the ring was empty, so that the GPU soon has work
  uint64_t framesRead = 0;
  Runs runs, spare;  // by when they were opened; with memory to be used again
  std::unordered_map<uint64_t, RunLengths> lengths;  // by stream
};

}  // namespace vgpu::stub
