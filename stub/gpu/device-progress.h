// The progress of one GPU: fences after all work of all streams, which the GPU itself reports as passed.
//
// Used by the thread of that GPU. A fence is made in a stream of our own, so that it delays no stream of the program: every stream that has
// had work since the last fence records an event, our stream waits for these events, and then the GPU writes the fence's number into a word
// of memory that the program does not share. Fences pass in order, so one word is enough. What waits for a fence is a continuation
// (continuations.h). At a barrier every fence has passed, so a suspend keeps nothing of this.
//
// A stream is queried first, and records an event only if it has work left: in a blocking stream, the event would also wait for the legacy
// default stream. If blocking streams have had work since the legacy stream's last work, nothing of ours goes into the legacy stream: it
// would wait for their work, and delay their later work. Instead, another stream of ours (behindLegacy), which is blocking and has no work,
// is implicitly ordered after the legacy stream's work: events and writes there delay only what waits for the legacy stream anyway.
//
// A wait for a blocking stream ends with the work that the stream has at that time, natively too if the legacy stream has later work. A
// write or event in the stream now would also wait for that later work. So each blocking stream records an event, its mark, before the
// legacy stream gets work after it, and the mark is queried between frames.
//
// A library waits, on the thread that calls it, for results in host memory. Work that precedes the call in its stream may finish only after
// this thread has executed further frames. The call then gets another stream (apart), which waits for nothing.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "stub/driver/driver.h"
#include "stub/gpu/handle-map.h"
#include "vgpu/base/memory-file.h"

namespace vgpu::stub {

class DeviceProgress {
 public:
  DeviceProgress(const Driver& driver, const HandleMap& handles) : driver(driver), handles(handles) {}
  ~DeviceProgress();  // in the device's context
  DeviceProgress(const DeviceProgress&) = delete;
  DeviceProgress& operator=(const DeviceProgress&) = delete;

  // In the device's context, which must be current.
  CUresult start();

  // Notes that `stream` (0: the legacy default stream) is given work. Called for every frame: if the stream is the same as before, it costs
  // one comparison.
  void used(uint64_t stream) {
    if (stream != lastUsed) note(stream);
  }

  // A word that the GPU or this thread writes.
  struct Completion {
    std::atomic<uint64_t>* word;
    CUdeviceptr onGpu;
    uint64_t value;
  };
  // Has the word written when `stream` has executed all its present work; for the legacy stream, also that of all blocking streams. Delays
  // no stream.
  CUresult signalStream(uint64_t stream, const Completion& completion);
  // Whether marks must be queried for signalStream(); ask() queries them.
  bool isAsking() const { return !asked.empty(); }
  void ask();

  // Whether all work so far is known to be done. Queries the driver without waiting; failed work counts as done.
  bool isDone();
  // Makes a fence after all work so far; `number`: its number. That of the last fence if no work has come since.
  CUresult fence(uint64_t& number);
  // Before a stream is destroyed: makes the next fence, and waits for other streams, include its work.
  CUresult joinDestroyed(uint64_t stream);
  // Makes the GPU write `value` into a completion word after all work so far.
  CUresult signal(CUdeviceptr completionWord, uint64_t value);

  // For copies of a save or restore, while the GPU has no other work.
  CUstream ownStream() const { return own; }

  // Whether work given to `stream` (0: the legacy default stream) now would have to wait for other work. Finished work may look busy for a
  // moment, so a busy stream is queried for busyMoment.
  bool isHeld(uint64_t stream) const;
  // A non-blocking stream for calls for which the worker waits: its work waits for nothing else, if it has no work left. Null if it cannot
  // be created. After the call, comesBehindApart() orders later work of `stream` after it.
  CUstream apartStream();
  CUresult comesBehindApart(uint64_t stream) { return delay(realOf(stream), apart); }

  // Synchronizes with a stream that never has work. The call returns at once, and makes the driver write what kernels of the context have
  // printed.
  void flushOutput() { driver.cuStreamSynchronize(idle); }

  // Also true if the context has ended: nothing runs there any more.
  bool hasPassed(uint64_t number) const { return fault() != CUDA_SUCCESS || word->load(std::memory_order_acquire) >= number; }
  uint64_t lastFence() const { return fences; }

  // The error that has ended the context, once it is known. A fault ends the contexts of all devices, so any GPU's thread may set it.
  CUresult fault() const { return failure.load(std::memory_order_relaxed); }
  void fail(CUresult code) {
    CUresult none = CUDA_SUCCESS;
    failure.compare_exchange_strong(none, code);
  }

 private:
  void note(uint64_t stream);
  CUstream realOf(uint64_t stream) const;
  bool isBlocking(CUstream stream) const;
  CUresult write(CUstream stream, const Completion& completion);
  CUresult signalLegacy(const Completion& completion);
  CUresult delay(CUstream waiting, CUstream stream);
  using Mark = std::shared_ptr<CUevent_st>;  // an event, shared by its stream and the waits for it
  void mark(uint64_t stream);

  static constexpr uint64_t none = ~uint64_t{0};  // not a handle

  const Driver& driver;
  const HandleMap& handles;
  Mapping memory;  // holds `word`
  std::atomic<uint64_t>* word = nullptr;
  CUdeviceptr wordOnGpu = 0;
  CUstream own = nullptr, idle = nullptr, apart = nullptr;
  CUstream behindLegacy = nullptr;  // blocking, unlike the other three
  CUevent joined = nullptr;
  uint64_t fences = 0;
  bool isFenceDue = false;               // our stream waits for work that no fence covers yet
  std::unordered_set<uint64_t> touched;  // streams that had work since the last fence
  uint64_t lastUsed = none;
  std::unordered_set<uint64_t> sinceLegacy;  // streams that had work since the legacy stream's last work; of non-blocking streams, only
                                             // some
  std::unordered_map<uint64_t, Mark> marks;  // of blocking streams: after their work before the legacy stream's last work
  struct Asked {
    Mark mark;
    Completion completion;
  };
  std::vector<Asked> asked;
  std::atomic<CUresult> failure{CUDA_SUCCESS};
};

}  // namespace vgpu::stub
