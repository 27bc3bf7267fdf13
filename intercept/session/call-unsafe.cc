#include <kj/debug.h>

#include <cstring>

#include "intercept/session/call.h"
#include "intercept/session/cancellation.h"
#include "vgpu/api/effects.h"

namespace vgpu::client {

namespace {

// The waiter of a call, in `own`; nullptr if the method is not waited for.
Waiter* takeWaiter(Thread& thread, api::Method method, std::optional<Waiter>& own) {
  switch (api::infoOf(method).route) {
    case api::Route::CALL: return &own.emplace(thread, SlotTable::forCalls);
    case api::Route::SIGNAL: return &own.emplace(thread, SlotTable::forWaits);
    default: return nullptr;
  }
}

// The device, once the worker consumes its ring. Before the call takes a slot or enters the gate.
unsigned ready(const Target& target) {
  target.thread.session.use(target.thread, target.device);
  return target.device;
}

}  // namespace

CallBase::CallBase(Target target, api::Method method, uint64_t words, Waiter* lent, bool inside)
    : thread(target.thread),
      method(method),
      words(words),
      executingDevice(ready(target)),
      waiter(lent != nullptr ? lent : takeWaiter(thread, method, own)),
      isRecorded(api::infoOf(method).replay == api::Replay::BUILD) {
  KJ_REQUIRE(words <= maxMessageWords, "a frame larger than the ring takes", api::infoOf(method).name, words);
  if (isRecorded && waiter != nullptr) message = kj::heapArray<capnp::word>(words);
  if (!inside) enterGate();
  if (waiter == nullptr || waiter->hasSlot()) {
    Session& session = thread.session;
    RingWriter& ring = session.ring(executingDevice);
    uint64_t position = isRecorded ? session.claimNumbered(executingDevice, words, number) : ring.claim(words);
    reservation = ring.occupy(position, words, session.lost);
  }
  if (reservation) {
    sequenceOf = reservation->sequence();
  } else {
    nowhere = kj::heapArray<capnp::word>(words);
    std::memset(nowhere.begin(), 0, words * sizeof(capnp::word));
  }
}

// With managed memory, if the frame may use it, on the devices. It is looked at inside the gate (ManagedMemory::exclude).
void CallBase::enterGate() {
  for (auto& managed = thread.session.managed;;) {
    pass.emplace(thread.session.gate, thread.mark);
    if (!managed.isTouched()) [[likely]] return;
    if (!ManagedMemory::mayBeUsedBy(method) && !ManagedMemory::isMemoryOperation(method) && !thread.usesManaged) return;
    pass.reset();
    managed.giveToDevice(thread);
  }
}

kj::ArrayPtr<capnp::word> CallBase::space() {
  if (!reservation) return nowhere;
  return kj::arrayPtr(reinterpret_cast<capnp::word*>(reservation->body()), words);
}

kj::ArrayPtr<const capnp::word> CallBase::replyWords() const {
  if (longReply != nullptr) return longReply;
  const uint32_t answered = waiter->replyWords();
  KJ_REQUIRE(answered * sizeof(capnp::word) <= replyBytes, "an answer larger than a slot", answered);
  return kj::arrayPtr(reinterpret_cast<const capnp::word*>(waiter->answer()), answered);
}

void CallBase::inStream(uint64_t stream) {
  KJ_REQUIRE(thread.deviceOf(stream) == executingDevice, "a frame of another device than its stream's");
  workStream = stream;
  if (auto* entry = thread.session.handles.find<api::Kind::STREAM>(stream)) {
    entry->lastWork.raise(&thread, sequenceOf);
    depth = &entry->depth;
  } else if (stream == 0) {
    depth = &thread.session.defaultStreamDepths[executingDevice];
  }
}

void CallBase::publish() {
  auto& info = api::infoOf(method);
  Session& session = thread.session;
  if (message != nullptr) std::memcpy(message.begin(), space().begin(), words * sizeof(capnp::word));
  if (!info.noWork) session.progress[executingDevice].lastWork.raise(&thread, sequenceOf);
  const uint16_t slot = waiter != nullptr ? waiter->slotIndex() : uint16_t{0};  // ignored for a posted frame
  session.ring(executingDevice).publish(*reservation, method, slot);
  reservation.reset();
}

// The worker waits for a frame at this position, and so do all frames behind it.
void CallBase::fillPlace() {
  std::memset(reservation->body(), 0, words * sizeof(capnp::word));
  thread.session.ring(executingDevice).publish(*reservation, api::Method::nothing, 0);
}

CUresult CallBase::post() {
  if (!reservation) return thread.session.lossResult();
  if (isRecorded) addToList(space());
  publish();
  if (depth == nullptr) return CUDA_SUCCESS;
  uint64_t frames = depth->count(thread);
  if (!depth->isDue(frames)) [[likely]] return CUDA_SUCCESS;
  pass.reset();
  return depth->await(thread, workStream, frames);
}

CUresult CallBase::call() {
  CancellationOff untilAnswered;
  if (!reservation) return thread.session.lossResult();
  publish();
  CUresult result = waiter->await(executingDevice, sequenceOf, Waiter::For::worker);
  if (uint64_t words = waiter->replyWords(); words * sizeof(capnp::word) > replyBytes) [[unlikely]]
    if (CUresult error = fetchLongReply(words)) return error;
  if (result == CUDA_SUCCESS && !recordsLater) record();
  return result;
}

bool CallBase::hasResults() const { return waiter->hasSlot() && replyWords().size() != 0; }

// Fetches the rest of a reply of which the slot holds the beginning. The thread stays inside the gate meanwhile, because only the
// worker that made the reply has the rest.
CUresult CallBase::fetchLongReply(uint64_t words) {
  KJ_REQUIRE(words * sizeof(capnp::word) <= maxReplyBytes, "a reply larger than any should be", words);
  auto whole = kj::heapArray<capnp::word>(words);
  auto bytes = whole.asBytes();
  std::memcpy(bytes.begin(), waiter->answer(), replyBytes);
  for (size_t have = replyBytes; have < bytes.size();) {
    Call<api::Cuda::ReplyPartParams> frame(thread.on(executingDevice), api::Method::replyPart, 0, waiter, true);
    frame->setOffset(static_cast<uint32_t>(have));
    if (CUresult error = frame.call()) return error;
    auto part = frame.results<api::Cuda::ReplyPartResults>().getBytes();
    KJ_REQUIRE(part.size() != 0 && part.size() <= bytes.size() - have, "a reply's part of impossible size", part.size());
    std::memcpy(bytes.begin() + have, part.begin(), part.size());
    have += part.size();
  }
  longReply = kj::mv(whole);
  return CUDA_SUCCESS;
}

CUresult CallBase::send() {
  if (!reservation) return thread.session.lossResult();
  publish();
  pass.reset();
  return CUDA_SUCCESS;
}

CUresult CallBase::reach() {
  CancellationOff untilAnswered;
  if (CUresult error = send()) return error;
  return waiter->await(executingDevice, sequenceOf);
}

CUresult CallBase::signal() {
  if (CUresult error = reach()) return error;
  return thread.session.takeError(executingDevice);
}

void CallBase::record() {
  if (isRecorded) addToList(message);
}

void CallBase::addToList(kj::ArrayPtr<const capnp::word> words) {
  const FrameFacts facts{sequenceOf - 1, number, rangeAddress, rangeBytes, method, static_cast<uint8_t>(executingDevice)};
  thread.session.recorder->add(facts, words);
}

}  // namespace vgpu::client
