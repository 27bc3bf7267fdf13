#include <kj/debug.h>

#include <cstring>

#include "intercept/session/call.h"
#include "intercept/session/cancellation.h"
#include "vgpu/api/effects.h"

namespace vgpu::client {

namespace {

// Whether the call uses memory of the driver's own. The session's memory is leased, and refused only after all idle leases ended.
bool takesDriverMemory(api::Method method) {
  switch (method) {
    case api::Method::arrayCreate:
    case api::Method::mipmapCreate:
    case api::Method::physicalCreate:
    case api::Method::moduleLoad:
    case api::Method::libraryCreate:
    case api::Method::greenCreate:
    case api::Method::ctxSetLimit: return true;
    default: return false;
  }
}

}  // namespace

// Moves managed memory that the host has touched to the devices, if the frame may use it. Checked inside the gate (ManagedMemory::exclude).
void CallBase::giveManaged() {
  auto& managed = thread.session.managed;
  while (managed.isTouched()) {
    if (!ManagedMemory::mayBeUsedBy(method) && !ManagedMemory::isMemoryOperation(method) && !thread.usesManaged) return;
    pass.reset();
    managed.giveToDevice(thread);
    pass.emplace(thread.session.gate, thread.mark);
  }
}

void CallBase::goNowhere() {
  nowhere = kj::heapArray<capnp::word>(words);
  std::memset(nowhere.begin(), 0, words * sizeof(capnp::word));
}

void CallBase::failOtherDevice() const { KJ_FAIL_REQUIRE("a frame for another device than its stream's", api::infoOf(method).name); }
void CallBase::failTooLarge() const { KJ_FAIL_REQUIRE("a frame is larger than the ring allows", api::infoOf(method).name, words); }

kj::ArrayPtr<capnp::word> CallBase::space() {
  if (!reservation) return nowhere;
  return kj::arrayPtr(reinterpret_cast<capnp::word*>(reservation->body()), words);
}

kj::ArrayPtr<const capnp::word> CallBase::replyWords() const {
  if (longReply != nullptr) return longReply;
  const uint32_t answered = waiter->replyWords();
  KJ_REQUIRE(answered * sizeof(capnp::word) <= replyBytes, "a reply is larger than a slot", answered);
  return kj::arrayPtr(reinterpret_cast<const capnp::word*>(waiter->answer()), answered);
}

// Publishes an empty frame: otherwise the worker, and all later frames, would wait forever at this position.
void CallBase::fillPlace() {
  std::memset(reservation->body(), 0, words * sizeof(capnp::word));
  thread.session.ring(executingDevice).publish(*reservation, api::Method::nothing, 0);
}

// Whether a frame that the worker's driver refused for lack of memory can be sent again after the session has returned leased memory of the
// device. The retry is a new frame with the same words.
bool CallBase::canAskAgain() {
  if (!takesDriverMemory(method) || message == nullptr || !own) return false;
  pass.reset();
  Memory& memory = thread.session.memory;
  const bool can = memory.freeBytes(thread, executingDevice) != 0;
  if (can) {
    own.reset();  // the frames that return memory need the slot
    memory.trim(thread, executingDevice, 0);
    waiter = takeWaiter(thread, method, own);
  }
  pass.emplace(thread.session.gate, thread.mark);
  if (!can || !waiter->hasSlot()) return can;
  claim();
  if (!reservation) return can;
  sequenceOf = reservation->sequence();
  std::memcpy(space().begin(), message.begin(), words * sizeof(capnp::word));
  return can;
}

CUresult CallBase::call() {
  CancellationOff untilAnswered;
  CUresult result = CUDA_SUCCESS;
  for (bool isLast = false;; isLast = true) {
    if (!reservation) return thread.session.lossResult();
    publish();
    result = waiter->await(executingDevice, sequenceOf, Waiter::For::worker);
    if (result != CUDA_ERROR_OUT_OF_MEMORY || isLast || !canAskAgain()) break;
  }
  if (uint64_t words = waiter->replyWords(); words * sizeof(capnp::word) > replyBytes) [[unlikely]]
    if (CUresult error = fetchLongReply(words)) return error;
  if (result == CUDA_SUCCESS && !recordsLater) record();
  return result;
}

bool CallBase::hasResults() const { return waiter->hasSlot() && replyWords().size() != 0; }

// Fetches the rest of a reply of which the slot holds only the first part. The thread stays inside the gate meanwhile, because only the
// worker that made the reply has the rest.
CUresult CallBase::fetchLongReply(uint64_t words) {
  KJ_REQUIRE(words * sizeof(capnp::word) <= maxReplyBytes, "a reply is too large", words);
  auto whole = kj::heapArray<capnp::word>(words);
  auto bytes = whole.asBytes();
  std::memcpy(bytes.begin(), waiter->answer(), replyBytes);
  for (size_t have = replyBytes; have < bytes.size();) {
    Call<api::Cuda::ReplyPartParams> frame(thread.on(executingDevice), api::Method::replyPart, 0, waiter, true);
    frame->setOffset(static_cast<uint32_t>(have));
    if (CUresult error = frame.call()) return error;
    auto part = frame.results<api::Cuda::ReplyPartResults>().getBytes();
    KJ_REQUIRE(part.size() != 0 && part.size() <= bytes.size() - have, "a reply's part has an invalid size", part.size());
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
