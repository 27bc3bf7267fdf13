// One call on its way: a frame built straight into the ring, then posted or waited for.
//
//   Call<api::Cuda::FillParams> frame(thread, api::Method::fill);
//   frame->setDestination(…);
//   return frame.post();
//
// Between the constructor and post(), call() or signal() the thread holds a place in the ring that the worker waits for:
// set the parameters and send, do nothing else. Where an exception comes in between, the destructor fills the place with a
// frame that does nothing.
#pragma once

#include <capnp/message.h>
#include <capnp/serialize.h>

#include <optional>

#include "cuda-frames.h"
#include "intercept/session/waiter.h"
#include "vgpu/api/cuda.capnp.h"
#include "vgpu/api/wire-value.h"

namespace vgpu::client {

// What a frame and its waiting have in common, whatever its parameters are.
class CallBase {
 protected:
  // `lent`: a waiter for a call that is not to take one for itself. `inside`: the thread is inside the gate already, because of
  // a call that goes on after this one.
  CallBase(Thread& thread, api::Method method, uint64_t words, Waiter* lent, bool inside);
  ~CallBase() {
    if (reservation) [[unlikely]] fillPlace();
  }
  CallBase(const CallBase&) = delete;
  CallBase& operator=(const CallBase&) = delete;

  kj::ArrayPtr<capnp::word> space();
  kj::ArrayPtr<const capnp::word> replyWords() const;

 public:
  // Fire and forget; a thread that has filled a stream waits there. CUDA_SUCCESS, or the session's loss.
  CUresult post();
  // Waits for the worker's answer and returns CUDA's.
  CUresult call();
  // Whether the reply of a call has results, which a refusal may have too.
  bool hasResults() const;
  // Waits until the GPU has come here. CUDA's answer: of this frame, of an earlier posted one, or of a faulted context.
  CUresult signal();
  // The same, and leaves the errors of earlier posted frames to somebody else.
  CUresult reach();
  // The same without the wait: the other half is await(device(), sequence number()) of the waiter that this frame was made
  // with. Several frames of one stream may be on their way with one waiter; the answer of a failed one is the answer of those
  // behind it too.
  CUresult send();

  uint64_t sequence() const { return sequenceOf; }

  // The device that executes this frame: the current context's, unless it says otherwise.
  unsigned device() const { return executingDevice; }
  void onDevice(unsigned device) { executingDevice = device; }
  // Says in which stream this frame is work: that stream's device executes it, and the client knows that it is outstanding
  // there.
  void inStream(uint64_t stream);
  // That stream's line; nullptr where the stream has been destroyed meanwhile.
  StreamCompletion* streamCompletion() const { return depth == nullptr ? nullptr : &depth->completion; }

  // For the object list: the range of what this frame makes.
  void describe(uint64_t address, uint64_t bytes) {
    rangeAddress = address;
    rangeBytes = bytes;
  }
  // A call whose answer decides the range records itself later, by record(); see moduleVariable.
  void recordLater() { recordsLater = true; }
  void record();

 protected:
  Thread& thread;

 private:
  void publish();
  void fillPlace();
  CUresult fetchLongReply(uint64_t words);

  api::Method method;
  uint64_t words;
  unsigned executingDevice;
  std::optional<Waiter> own;  // of a method that is waited for, where none was lent
  Waiter* waiter;
  std::optional<Gate::Pass> pass;
  std::optional<Reservation> reservation;  // until it is published
  uint64_t sequenceOf = 0;
  bool recordsLater = false;
  uint64_t workStream = 0;
  StreamDepth* depth = nullptr;    // of workStream; nullptr: the frame is work in none
  Recorder::Queue recipe;          // of one, where the object list will want this frame; made before it is sent
  kj::Array<capnp::word> nowhere;  // where a frame of a lost session is built
  kj::Array<capnp::word> longReply;  // one that the slot did not take
  uint64_t rangeAddress = 0, rangeBytes = 0;
};

// Words that a Data or Text of `bytes` adds to a frame.
constexpr uint64_t dataWords(uint64_t bytes) { return (bytes + 7) / 8; }

// Words that a structure among the parameters adds.
template <typename Structure>
constexpr uint64_t structWords = Structure::_capnpPrivate::dataWordSize + Structure::_capnpPrivate::pointerCount;

template <typename Params>
class Call : public CallBase {
 public:
  // `extraWords`: of the lists, data and texts that the parameters will hold.
  Call(Thread& thread, api::Method method, uint64_t extraWords = 0, Waiter* lent = nullptr, bool inside = false)
      : CallBase(thread, method, 1 + api::parameterWords(method) + extraWords, lent, inside),
        params(space()) {}

  api::FrameBuilder<Params>* operator->() { return &params; }

  // Sets the parameter `stream`, in which this frame is work.
  void setStream(uint64_t stream) {
    params.setStream(stream);
    inStream(stream);
  }

  // The answer's results, after a successful call(). What they point into is there as long as this object.
  template <typename Results>
  typename Results::Reader results() {
    replySegment = replyWords();
    answer.emplace(kj::arrayPtr(&replySegment, 1));
    return answer->template getRoot<Results>();
  }

 private:
  api::FrameBuilder<Params> params;
  kj::ArrayPtr<const capnp::word> replySegment;
  std::optional<capnp::SegmentArrayMessageReader> answer;
};

}  // namespace vgpu::client
