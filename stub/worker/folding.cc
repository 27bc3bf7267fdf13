#include "stub/worker/folding.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <thread>

namespace vgpu::stub {

namespace {

// Lengths of parts of a run that is not cut at a period: few lengths make few graph shapes. Below the least, launching one by one is
// cheaper.
constexpr std::array<size_t, 6> cutLengths{longestRun, 32, 16, 8, 4, 2};
constexpr size_t leastFolded = 8, leastForced = 2;

// Streams whose work is remembered, 80 KiB for each.
constexpr size_t mostStreams = 256;

// Amount of work that a stream must have had before graphs are made for it: making a node takes as long as a launch.
constexpr uint64_t leastForGraphs = 64;

// A run is issued when so many frames have come after its first frame: frames of other streams must not delay a stream.
constexpr uint64_t mostFramesBehind = 128;

// For tests (`always`): how long to wait for the second frame of a run.
constexpr auto patience = std::chrono::milliseconds(1);

}  // namespace

void Folding::begin() {
  auto said = static_cast<FoldMode>(on.shared().header().fold.load(std::memory_order_relaxed));
  mode = said == FoldMode::OFF || said == FoldMode::AUTO || said == FoldMode::ALWAYS ? said : on.session.foldMode;
  growing = leastFolded;
}

bool Folding::isFollowed(const Frame& frame) const {
  auto method = reader.methodAfter(frame);
  if (!method) return mode == FoldMode::ALWAYS;
  return foldableOf(static_cast<api::Method>(*method)) != Foldable::NO;
}

uint64_t Folding::issue(const Frame& first, const std::atomic<bool>& stop) {
  if (on.gpu.isEnded() || on.gpu.progress.fault() != CUDA_SUCCESS) return first.position;
  uint64_t end = first.position;
  std::optional<Frame> frame = first;
  while (frame && take(*frame)) {
    end = frame->position + frame->bytes;
    if (runs.empty()) return end;  // return to the consumer, which may have other things to do between two frames
    frame = frameAfter(*frame, stop);
  }
  issueAll();
  return end;
}

std::optional<Frame> Folding::frameAfter(const Frame& frame, const std::atomic<bool>& stop) {
  auto next = reader.after(frame);
  if (next || mode != FoldMode::ALWAYS) return next;
  for (auto until = std::chrono::steady_clock::now() + patience; !next && !stop && std::chrono::steady_clock::now() < until;) {
    std::this_thread::yield();
    next = reader.after(frame);
  }
  return next;
}

// Issues a frame, or keeps it. False if the frame cannot be folded.
bool Folding::take(const Frame& frame) {
  ++framesRead;
  switch (foldableOf(frame.method)) {
    case Foldable::WORK: return takeWork(frame);
    case Foldable::FENCE: takeFence(frame); return true;
    case Foldable::WAIT: takeWait(frame); return true;
    default: return false;
  }
}

bool Folding::takeWork(const Frame& frame) {
  FoldedWork work;
  uint64_t stream = streamOf(frame);
  if (on.greenContexts.has(stream) || !readWork(on, frame, work)) return false;
  makeOrder(stream);
  if (auto* record = std::get_if<RecordWork>(&work.what)) issueRecordOf(record->event, stream);
  auto run = find(stream);
  if (run == runs.end()) run = open(stream);
  run->work.push_back(work);
  run->frames.push_back(frame);
  run->lengths->add(work.hash, work.kind);
  if (run->work.size() >= run->target) close(run);
  issueOld();
  return true;
}

void Folding::takeFence(const Frame& frame) {
  makeOrder(streamOf(frame));
  auto run = find(streamOf(frame));
  if (run == runs.end()) return execute(frame);
  run->frames.push_back(frame);
}

void Folding::takeWait(const Frame& frame) {
  uint64_t stream = streamOf(frame);
  makeOrder(stream);
  if (auto run = find(stream); run != runs.end()) close(run);
  issueRecordOf(api::FrameReader<api::Cuda::StreamWaitEventParams>(frame.words).getHEvent(), stream);
  execute(frame);
}

Folding::Runs::iterator Folding::find(uint64_t stream) {
  return std::ranges::find_if(runs, [&](const Run& run) { return run.stream == stream; });
}

Folding::Runs::iterator Folding::open(uint64_t stream) {
  if (runs.empty() && lengths.size() >= mostStreams && !lengths.contains(stream)) forgetStreams();
  if (spare.empty()) spare.emplace_back();
  runs.splice(runs.end(), spare, spare.begin());
  Run& run = runs.back();
  run.stream = stream;
  run.opened = framesRead;
  run.lengths = &lengths[stream];
  run.target = run.lengths->next();
  if (!run.lengths->repeats() && mode != FoldMode::ALWAYS) run.target = std::min(run.target, growing);
  return std::prev(runs.end());
}

// Forgets the work of destroyed streams, or, if that makes no room, of all streams.
void Folding::forgetStreams() {
  auto& live = on.handles.of(api::Kind::STREAM);
  std::erase_if(lengths, [&](auto& each) { return each.first != 0 && !live.contains(each.first); });
  if (lengths.size() >= mostStreams) lengths.clear();
}

// Called before work of `stream`, or a fence that shows its completion, is kept: the legacy default stream is ordered with the other
// streams by the order of their calls.
void Folding::makeOrder(uint64_t stream) {
  if (runs.empty() || (runs.front().stream == 0) == (stream == 0)) return;
  issueAll();
}

// Issues the run in which the event is recorded, unless it is that of `exceptIn`.
void Folding::issueRecordOf(uint64_t event, uint64_t exceptIn) {
  auto run = std::ranges::find_if(runs, [&](const Run& run) {
    return run.stream != exceptIn && std::ranges::any_of(run.work, [&](const FoldedWork& work) {
             auto* record = std::get_if<RecordWork>(&work.what);
             return record != nullptr && record->event == event;
           });
  });
  if (run != runs.end()) close(run);
}

void Folding::issueOld() {
  while (!runs.empty() && framesRead - runs.front().opened > mostFramesBehind) close(runs.begin());
}

void Folding::issueAll() {
  while (!runs.empty()) close(runs.begin());
}

void Folding::close(Runs::iterator run) {
  issueParts(*run);
  run->clear();
  spare.splice(spare.end(), runs, run);
  growing = std::min(2 * growing, longestRun);
}

// Issues a run in parts: the whole run if it has its target length, else parts of the lengths in cutLengths; the rest one by one.
void Folding::issueParts(Run& run) {
  FoldedRun work = run.work;
  std::span<const Frame> frames = run.frames;
  while (!frames.empty()) {
    bool isWhole = work.size() == run.target && work.size() == run.work.size() && work.size() >= least();
    size_t count = isWhole ? work.size() : partOf(work.size()), pieces = std::min(std::max<size_t>(count, 1), work.size());
    size_t taken = 0;  // number of frames: those of the work, and the fences after it
    for (size_t met = 0; taken < frames.size(); ++taken) {
      if (foldableOf(frames[taken].method) == Foldable::FENCE) continue;
      if (met++ == pieces) break;
    }
    if (count == 0 || !launch(run, work.first(pieces), frames.first(taken)))
      for (const Frame& each : frames.first(taken)) execute(each);
    run.lengths->cut(pieces);
    work = work.subspan(pieces);
    frames = frames.subspan(taken);
  }
}

size_t Folding::least() const { return mode == FoldMode::ALWAYS ? leastForced : leastFolded; }

size_t Folding::partOf(size_t work) const {
  for (size_t length : cutLengths)
    if (length <= work && length >= least()) return length;
  return 0;
}

bool Folding::launch(Run& run, FoldedRun work, std::span<const Frame> frames) {
  FoldedRunHints hints;
  hints.copies = run.lengths->copies();
  auto isLikeFirst = [&](const FoldedWork& each) { return each.shape == work.front().shape; };
  hints.isShort = mode == FoldMode::AUTO && run.lengths->pieces() < leastForGraphs;
  hints.isNew = mode == FoldMode::AUTO && !run.lengths->repeats() && !std::ranges::all_of(work, isLikeFirst);
  if (!on.gpu.folded.launch(run.stream, on.stream(run.stream), work, hints)) return false;
  noteLaunched(run, work);
  executeFences(frames);
  return true;
}

// Does what executing the frames does besides the driver's calls.
void Folding::noteLaunched(const Run& run, FoldedRun work) {
  for (const FoldedWork& each : work) {
    if (auto* kernel = std::get_if<KernelWork>(&each.what)) {
      on.gpu.launched(run.stream, kernel->function);
      on.gpu.counts->countFolded();
      if (on.session.prints) on.noteLaunch();
    } else if (auto* record = std::get_if<RecordWork>(&each.what)) {
      on.eventTimes.recorded(record->event);
    }
  }
}

// Executes the fences after the run. Skips a fence if a later record or fence writes a higher number into the same completion word.
void Folding::executeFences(std::span<const Frame> frames) {
  auto lineOf = [](const Frame& frame) {
    return frame.method == api::Method::streamFence ? api::FrameReader<api::Cuda::StreamFenceParams>(frame.words).getLine()
                                                   : api::FrameReader<api::Cuda::EventRecordParams>(frame.words).getLine();
  };
  for (size_t i = 0; i < frames.size(); ++i) {
    if (frames[i].method != api::Method::streamFence) continue;
    bool isPassed = std::ranges::any_of(frames.subspan(i + 1), [&](const Frame& later) {
      bool writes = later.method == api::Method::eventRecord || later.method == api::Method::streamFence;
      return writes && lineOf(later) == lineOf(frames[i]);
    });
    if (!isPassed) execute(frames[i]);
  }
}

}  // namespace vgpu::stub
