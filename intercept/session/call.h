// One call: a frame built directly in the ring, then posted or waited for.
//
//   Call<api::Cuda::FillParams> frame(thread, api::Method::fill);
//   frame->setDestination(…);
//   return frame.post();
//
// The frame goes into the ring of the device that executes it. Between the constructor and post(), call() or signal() the thread holds a
// reservation in that ring, for which the worker waits: set the parameters and send, do nothing else. If an exception is thrown in between,
// the destructor publishes a frame that does nothing.
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
  // `lent`: the waiter to use instead of an own one. `inside`: the thread is inside the gate already, because of an enclosing call. Inlined
  // where the method is a constant: most calls post a frame that makes no object, and need little of the code below.
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
  // The reply of a successful call(). Lives as long as this object.
  kj::ArrayPtr<const capnp::word> replyWords() const;

  // Sends the frame without waiting for its execution; waits only if the stream's depth is exhausted. CUDA_SUCCESS, or the error of a lost
  // session. `pageableBytes`: how many pageable bytes for the GPU the frame itself carries.
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
  // Waits for the worker's reply. CUDA's result.
  CUresult call();
  // Whether the reply of a call has results; a failed call's may have some too.
  bool hasResults() const;
  // Waits until the GPU has passed this frame's point in its stream. CUDA's result: an error of this frame, of an earlier posted frame, or
  // of a faulted context.
  CUresult signal();
  // As signal(), but leaves the errors of earlier posted frames to the next call that reports them.
  CUresult reach();
  // As reach(), without the wait: that is await(device(), sequence()) of the waiter that this frame was made with. One waiter may have
  // several pending frames of one stream; if one fails, the later ones get its result too.
  CUresult send();

  uint64_t sequence() const { return sequenceOf; }

  // The device that executes this frame.
  unsigned device() const { return executingDevice; }
  // Sets the stream, of the same device, in which this frame is work: the client records it as outstanding there.
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
  // The completion word of that stream; nullptr if the stream was destroyed meanwhile.
  StreamCompletion* streamCompletion() const { return depth == nullptr ? nullptr : &depth->completion; }

  // For the object list: the address range of the object that this frame makes. Call before post(), or before record().
  void describe(uint64_t address, uint64_t bytes) {
    rangeAddress = address;
    rangeBytes = bytes;
  }
  // For a call whose reply says whether and where it made an object: record() then adds it to the object list (see moduleVariable).
  void recordLater() { recordsLater = true; }
  void record();

 protected:
  Thread& thread;

 private:
  // Ensures that the worker consumes the device's ring; returns the device. Before the call takes a slot or enters the gate.
  static unsigned ready(const Target& target) {
    target.thread.session.use(target.thread, target.device);
    return target.device;
  }
  // Makes the waiter of a call, in `own`; nullptr if the method is not waited for.
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
  bool isRecorded;  // the object list records it
  bool recordsLater = false;
  uint64_t number = 0;  // the sequence of a recorded frame in the session
  kj::Array<capnp::word> message;  // copy of a frame that is recorded after its execution, when the ring may have reused its space
  uint64_t workStream = 0;
  StreamDepth* depth = nullptr;    // of workStream; nullptr: the frame is no stream's work
  kj::Array<capnp::word> nowhere;  // buffer for a frame if the session is lost
  kj::Array<capnp::word> longReply;  // a reply too large for the slot
  uint64_t rangeAddress = 0, rangeBytes = 0;
};

// Words that a Data list of `bytes` adds to a frame; a text has a byte more than it has characters.
constexpr uint64_t dataWords(uint64_t bytes) { return (bytes + 7) / 8; }
// The most that all Data lists of a frame take together.
constexpr uint64_t mostDataWords = maxMessageWords - 64;

// `Builder`: for the whole frame, or for a part of it.
template <typename Params, typename Builder = api::FrameBuilder<Params>>
class Call : public CallBase {
 public:
  // `extraWords`: the words of the Data lists that the parameters will hold.
  [[gnu::always_inline]] Call(Target target, api::Method method, uint64_t extraWords = 0, Waiter* lent = nullptr, bool inside = false)
      : CallBase(target, method, Builder::words + extraWords, lent, inside), params(space()) {}

  Builder* operator->() { return &params; }

  // Sets the parameter `stream`, the stream in which this frame is work.
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
