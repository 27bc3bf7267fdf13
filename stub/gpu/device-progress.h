// How far the GPU has come on one device: fences behind all work of all streams, which the GPU itself says it has passed.
//
// The thread's of that GPU. A fence is made in a stream of our own, so that it holds up no stream of the program: every stream
// that has had work since the last fence records an event, our stream waits for these, and then the GPU writes the fence's number
// into a word of memory that the program does not share. Fences pass in their order, so one word is enough. What waits for a
// fence is a continuation (continuations.h). At a barrier every fence has passed: of this a suspend keeps nothing.
//
// A stream is asked first whether it has anything left: an event in one that blocks would come behind the work of the legacy default
// stream. Nothing of ours goes into that one, if streams that block have had work since: it would come behind theirs, and hold up what
// they are given later. What it has been given is also behind it in another stream of ours, which blocks and has no work, so there
// events and writes hold up nothing that is not behind the legacy stream anyway.
//
// A wait for a stream that blocks ends with the work that the stream has by then, natively too if the legacy stream has work behind it.
// A write in the stream would come behind that as well, and so would an event. So each stream that blocks records an event, its mark, before
// the legacy stream is given work behind it, and the mark is queried between frames.
//
// A library waits on the thread that calls it for what it writes to host memory. What its stream would come behind may be over only when
// this thread has executed further frames: it gets another stream then, which comes behind nothing.
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

  // In the device's context, which is current.
  CUresult start();

  // `stream` (0: the legacy default stream) is given work. In every frame: a stream that follows itself costs a comparison.
  void used(uint64_t stream) {
    if (stream != lastUsed) note(stream);
  }

  // A word that the GPU writes, or this thread.
  struct Completion {
    std::atomic<uint64_t>* word;
    CUdeviceptr onGpu;
    uint64_t value;
  };
  // Has it written when `stream` has executed all that it has been given so far: of the legacy stream, and all streams that block. Holds
  // up nothing.
  CUresult signalStream(uint64_t stream, const Completion& completion);
  // Whether marks are to be queried for that; queries them.
  bool isAsking() const { return !asked.empty(); }
  void ask();

  // Whether all work so far is known to be over. Asks the driver, and waits for nothing; what has failed is over.
  bool isDone();
  // Makes a fence behind all work so far: `number`. The one before, if nothing has come since.
  CUresult fence(uint64_t& number);
  // The part that a stream which is about to be destroyed has of the next fence, and of others' waits.
  CUresult joinDestroyed(uint64_t stream);
  // Lets the GPU write `value` into a completion word behind all work so far.
  CUresult signal(CUdeviceptr completionWord, uint64_t value);

  // For copies of a save or restore, while the GPU has no other work.
  CUstream ownStream() const { return own; }

  // Whether work that `stream` (0: the legacy default stream) is given now would come behind other work. What is over may look busy for a
  // moment: it is looked at for so long.
  bool isHeld(uint64_t stream) const;
  // A stream that does not block, for what the worker waits for: its work comes behind nothing else, if nothing is left in it. Null if it
  // cannot be made. `stream` comes behind that, once this has been called after it.
  CUstream apartStream();
  CUresult comesBehindApart(uint64_t stream) { return delay(realOf(stream), apart); }

  // Synchronizes with a stream that never has any work. That returns at once, and is an occasion on which the driver writes
  // what kernels of the context have printed.
  void flushOutput() { driver.cuStreamSynchronize(idle); }

  // Also if the context has ended: nothing runs there any more.
  bool hasPassed(uint64_t number) const { return fault() != CUDA_SUCCESS || word->load(std::memory_order_acquire) >= number; }
  uint64_t lastFence() const { return fences; }

  // What has ended the context, once that is known. A fault ends those of all devices, so any GPU's thread may say so.
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

  static constexpr uint64_t none = ~uint64_t{0};  // no handle

  const Driver& driver;
  const HandleMap& handles;
  Mapping memory;  // of the word
  std::atomic<uint64_t>* word = nullptr;
  CUdeviceptr wordOnGpu = 0;
  CUstream own = nullptr, idle = nullptr, apart = nullptr;
  CUstream behindLegacy = nullptr;  // blocks, as neither of these does
  CUevent joined = nullptr;
  uint64_t fences = 0;
  bool isFenceDue = false;               // our stream waits for something that no fence is behind yet
  std::unordered_set<uint64_t> touched;  // streams that had work since the last fence
  uint64_t lastUsed = none;
  std::unordered_set<uint64_t> sinceLegacy;  // streams that had work since the legacy stream had; of those that do not block, some
  std::unordered_map<uint64_t, Mark> marks;  // of streams that block: behind their work before the legacy stream's latest
  struct Asked {
    Mark mark;
    Completion completion;
  };
  std::vector<Asked> asked;
  std::atomic<CUresult> failure{CUDA_SUCCESS};
};

}  // namespace vgpu::stub
