// One call: a frame built directly in the ring, then posted or waited for.
//
//   Call<api::Cuda::FillParams> frame(thread, api::Method::fill);
//   frame->setDestination(…);
//   return frame.post();
//
// It goes into the ring of the device that executes it. Between the constructor and post(), call() or signal() the thread holds a
// reservation in that ring for which the worker waits: set the parameters and send, do nothing else. If an exception is thrown in
// between, the destructor publishes a frame that does nothing.
#pragma once

#include <cstring>
#include <optional>

#include "cuda-frames.h"
#include "intercept/session/waiter.h"
#include "vgpu/api/wire-value.h"

namespace vgpu::client {

// The part of a call that does not depend on its parameters.
class CallBase {
 protected:
  // `lent`: the waiter to use instead of one of its own. `inside`: the thread is inside the gate already, because of an enclosing
  // call. Compiled where the method is known: most calls post a frame that leaves no object, and need little of what follows.
  [[gnu::always_inline]] CallBase(Target target, api::Method method, uint64_t words, Waiter* lent, bool inside)
      : thread(target.thread),
        method(method),
        words(words),
        executingDevice(ready(target)),
        waiter(lent != nullptr ? lent : takeWaiter(thread, method, own)),
        isRecorded(api::natureOf(method).replay == api::Replay::BUILD) {
    if (words > maxMessageWords) [[unlikely]] failTooLarge();
    if (isRecorded && waiter != nullptr) message = kj::heapArray<capnp::word>(words);
    if (!inside) enterGate();
    if (waiter == nullptr || waiter->hasSlot()) claim();
    if (reservation) [[likely]]
      sequenceOf = reservation->sequence();
    else
      goNowhere();
  }
  ~CallBase() {
    if (reservation) [[unlikely]] fillPlace();
  }
  CallBase(const CallBase&) = delete;
  CallBase& operator=(const CallBase&) = delete;

  kj::ArrayPtr<capnp::word> space();

 public:
  // Of a successful call(). They live as long as this object.
  kj::ArrayPtr<const capnp::word> replyWords() const;

  // Sends the frame and does not wait for its execution, but waits if the stream is full. CUDA_SUCCESS, or the error of a lost
  // session. `pageableBytes`: of the frame's own, that the GPU is to have.
  CUresult post(uint64_t pageableBytes = 0) {
    if (!reservation) [[unlikely]] return thread.session.lossResult();
    if (isRecorded) addToList(space());
    publish();
    if (depth == nullptr) return CUDA_SUCCESS;
    const uint64_t units = depth->count(thread, pageableBytes);
    if (!depth->isDue(units)) [[likely]] return CUDA_SUCCESS;
    pass.reset();
    return depth->await(thread, workStream, units);
  }
  // Waits for the worker's reply and returns CUDA's result.
  CUresult call();
  // Whether the reply of a call has results; that of a failed call may have some too.
  bool hasResults() const;
  // Waits until the GPU has passed this frame's point in its stream. CUDA's result: of this frame, of an earlier posted one, or
  // of a faulted context.
  CUresult signal();
  // The same, but leaves the errors of earlier posted frames to the next call that reports them.
  CUresult reach();
  // The same without the wait, which is await(device(), sequence()) of the waiter that this frame was made with. Several frames
  // of one stream may be pending with one waiter; the result of a failed one is the result of those behind it too.
  CUresult send();

  uint64_t sequence() const { return sequenceOf; }

  // The device that executes this frame.
  unsigned device() const { return executingDevice; }
  // Sets the stream, of that device, in which this frame is work: the client records it as outstanding there.
  void inStream(uint64_t stream) {
    if (thread.deviceOf(stream) != executingDevice) [[unlikely]] failOtherDevice();
    workStream = stream;
    if (auto* entry = thread.session.handles.find<api::Kind::STREAM>(stream)) {
      entry->lastWork.raise(&thread, sequenceOf);
      depth = &entry->depth;
    } else if (stream == 0) {
      depth = &thread.session.defaultStreamDepths[executingDevice];
    }
  }
  // That stream's completion word; nullptr if the stream has been destroyed meanwhile.
  StreamCompletion* streamCompletion() const { return depth == nullptr ? nullptr : &depth->completion; }

  // For the object list: the address range of the object that this frame makes. Before it is posted, or before record().
  void describe(uint64_t address, uint64_t bytes) {
    rangeAddress = address;
    rangeBytes = bytes;
  }
  // A call whose reply contains the range, or says whether it made anything, is recorded later, by record(); see moduleVariable.
  void recordLater() { recordsLater = true; }
  void record();

 protected:
  Thread& thread;

 private:
  // The device, once the worker consumes its ring. Before the call takes a slot or enters the gate.
  static unsigned ready(const Target& target) {
    target.thread.session.use(target.thread, target.device);
    return target.device;
  }
  // The waiter of a call, in `own`; nullptr if the method is not waited for.
  static Waiter* takeWaiter(Thread& thread, api::Method method, std::optional<Waiter>& own) {
    const api::Route route = api::natureOf(method).route;
    if (route == api::Route::POST) return nullptr;
    return &own.emplace(thread, route == api::Route::CALL ? SlotTable::forCalls : SlotTable::forWaits);
  }
  void enterGate() {
    pass.emplace(thread.session.gate, thread.mark);
    if (thread.session.managed.isTouched()) [[unlikely]] giveManaged();
  }
  void claim() {
    Session& session = thread.session;
    RingWriter& ring = session.ring(executingDevice);
    const uint64_t position = isRecorded ? session.claimNumbered(executingDevice, words, number) : ring.claim(words);
    reservation = ring.occupy(position, words, session.lost);
  }
  void publish() {
    Session& session = thread.session;
    if (message != nullptr) std::memcpy(message.begin(), space().begin(), words * sizeof(capnp::word));
    if (!api::natureOf(method).noWork) session.progress[executingDevice].lastWork.raise(&thread, sequenceOf);
    const uint16_t slot = waiter != nullptr ? waiter->slotIndex() : uint16_t{0};  // ignored for a posted frame
    session.ring(executingDevice).publish(*reservation, method, slot);
    reservation.reset();
  }
  void giveManaged();
  bool canAskAgain();
  void goNowhere();
  [[noreturn]] void failTooLarge() const;
  [[noreturn]] void failOtherDevice() const;
  void fillPlace();
  void addToList(kj::ArrayPtr<const capnp::word> words);
  CUresult fetchLongReply(uint64_t words);

  api::Method method;
  uint64_t words;
  unsigned executingDevice;
  std::optional<Waiter> own;  // if the method is waited for and none was lent
  Waiter* waiter;
  std::optional<Gate::Pass> pass;
  std::optional<Reservation> reservation;  // until it is published
  uint64_t sequenceOf = 0;
  bool isRecorded;  // belongs into the object list
  bool recordsLater = false;
  uint64_t number = 0;  // of a recorded frame
  kj::Array<capnp::word> message;  // of one that is recorded when it has been executed, because it may have been consumed then
  uint64_t workStream = 0;
  StreamDepth* depth = nullptr;    // of workStream; nullptr: the frame is work in none
  kj::Array<capnp::word> nowhere;  // buffer for a frame of a lost session
  kj::Array<capnp::word> longReply;  // a reply too large for the slot
  uint64_t rangeAddress = 0, rangeBytes = 0;
};

// Words that a Data list of `bytes` adds to a frame; a text has a byte more than it has characters.
constexpr uint64_t dataWords(uint64_t bytes) { return (bytes + 7) / 8; }
// Of a frame's Data lists together, at most.
constexpr uint64_t mostDataWords = maxMessageWords - 64;

// `Builder`: of the whole frame, or of a part of it.
template <typename Params, typename Builder = api::FrameBuilder<Params>>
class Call : public CallBase {
 public:
  // `extraWords`: of the Data lists that the parameters will hold.
  [[gnu::always_inline]] Call(Target target, api::Method method, uint64_t extraWords = 0, Waiter* lent = nullptr, bool inside = false)
      : CallBase(target, method, Builder::words + extraWords, lent, inside), params(space()) {}

  Builder* operator->() { return &params; }

  // Sets the parameter `stream`, in which this frame is work.
  void setStream(uint64_t stream) {
    params.setStream(stream);
    inStream(stream);
  }

  // The reply's results, after a successful call(). They point into memory that lives as long as this object.
  template <typename Results>
  api::FrameReader<Results> results() const {
    return api::FrameReader<Results>(replyWords());
  }

 private:
  Builder params;
};

}  // namespace vgpu::client
