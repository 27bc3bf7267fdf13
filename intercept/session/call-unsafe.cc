#include <kj/debug.h>

#include <cstring>

#include "intercept/session/call.h"
#include "vgpu/api/effects.h"
#include "vgpu/wire/futex.h"

namespace vgpu {

CallBase::CallBase(Thread& thread, api::Method method, uint64_t words, bool inside)
    : thread(thread), method(method), words(words), executingDevice(thread.device()), insideGate(!inside) {
  KJ_REQUIRE(words <= maxMessageWords, "a frame larger than the ring takes", api::infoOf(method).name, words);
  if (!inside) thread.session.gate.enter(thread.slotIndex);
  reservation = thread.session.ring.reserve(words, thread.session.lost);
  if (reservation) {
    stampOf = reservation->stamp();
  } else {
    nowhere = kj::heapArray<capnp::word>(words);
    std::memset(nowhere.begin(), 0, words * sizeof(capnp::word));
  }
}

CallBase::~CallBase() {
  if (insideGate) leaveGate();
}

void CallBase::leaveGate() {
  thread.session.gate.leave(thread.slotIndex);
  insideGate = false;
}

kj::ArrayPtr<capnp::word> CallBase::space() {
  if (!reservation) return nowhere;
  return kj::arrayPtr(reinterpret_cast<capnp::word*>(reservation->body()), words);
}

kj::ArrayPtr<const capnp::word> CallBase::answerWords() const {
  if (longReply != nullptr) return longReply;
  const Slot& slot = thread.slot();
  KJ_REQUIRE(slot.answerWords * sizeof(capnp::word) <= answerBytes, "an answer larger than a slot", slot.answerWords);
  return kj::arrayPtr(reinterpret_cast<const capnp::word*>(slot.answer), slot.answerWords);
}

void CallBase::inStream(uint64_t stream) {
  executingDevice = thread.deviceOf(stream);
  workStream = stream;
  if (ObjectEntry* entry = thread.session.handles.find(api::Kind::STREAM, stream)) {
    raise(entry->lastWork, stampOf);
    depth = &entry->depth;
  } else if (stream == 0) {
    depth = &thread.session.defaultStreamDepths[executingDevice];
  }
}

void CallBase::publish() {
  auto& info = api::infoOf(method);
  Session& session = thread.session;
  if (info.replay == api::Replay::BUILD) kept = kj::heapArray<capnp::word>(space().asConst());
  if (!info.noWork) raise(session.progress[executingDevice].lastWork, stampOf);
  session.ring.publish(*reservation, method, thread.slotIndex, static_cast<uint8_t>(executingDevice));
}

CUresult CallBase::post() {
  if (!reservation) return thread.session.lossResult();
  publish();
  if (!recordsLater) record();
  if (depth == nullptr) return CUDA_SUCCESS;
  uint64_t frames = depth->count(thread);
  if (!depth->isDue(frames)) [[likely]] return CUDA_SUCCESS;
  leaveGate();
  return depth->await(thread, workStream, frames);
}

CUresult CallBase::call() {
  if (!reservation) return thread.session.lossResult();
  expectAnswer(thread);
  publish();
  CUresult result = awaitStamp(thread, executingDevice, stampOf, Waiting::forWorker);
  if (uint64_t words = thread.slot().answerWords; words * sizeof(capnp::word) > answerBytes) [[unlikely]]
    if (CUresult error = fetchLongReply(words)) return error;
  if (result == CUDA_SUCCESS && !recordsLater) record();
  return result;
}

bool CallBase::hasResults() const { return answerWords().size() != 0; }

// Gathers a reply of which the slot holds the beginning. The thread stays inside the gate for it, because only the worker
// that gave the reply has the rest.
CUresult CallBase::fetchLongReply(uint64_t words) {
  KJ_REQUIRE(words * sizeof(capnp::word) <= maxReplyBytes, "a reply larger than any should be", words);
  auto whole = kj::heapArray<capnp::word>(words);
  auto bytes = whole.asBytes();
  std::memcpy(bytes.begin(), thread.slot().answer, answerBytes);
  for (size_t have = answerBytes; have < bytes.size();) {
    Call<api::Cuda::ReplyPartParams> frame(thread, api::Method::replyPart, 0, true);
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
  leaveGate();
  return CUDA_SUCCESS;
}

CUresult CallBase::signal() {
  expectAnswer(thread);
  if (CUresult error = send()) return error;
  if (CUresult error = awaitStamp(thread, executingDevice, stampOf)) return error;
  return thread.session.takeError(executingDevice);
}

void CallBase::record() {
  if (kept == nullptr) return;
  thread.session.recorder->add({.position = stampOf - 1,
                                .method = method,
                                .device = static_cast<uint8_t>(executingDevice),
                                .words = kj::mv(kept),
                                .address = rangeAddress,
                                .bytes = rangeBytes});
}

void expectAnswer(Thread& thread) {
  Slot& slot = thread.slot();
  slot.result = CUDA_SUCCESS;
  slot.answerWords = 0;
}

// Spins, then sleeps for growing spells: the GPU writes `done` without waking anybody, the worker wakes us.
CUresult awaitStamp(Thread& thread, unsigned device, uint64_t stamp, Waiting waiting) {
  Session& session = thread.session;
  Slot& slot = thread.slot();
  Backoff backoff;
  while (slot.done.load(std::memory_order_acquire) < stamp) {
    if (session.lost.load(std::memory_order_relaxed)) return session.lossResult();
    if (waiting == Waiting::forGpu)
      if (CUresult fault = session.faultOf(device, stamp)) return fault;
    if (backoff.spin()) continue;
    uint32_t seen = slot.wakeups.load();
    slot.sleeping.store(1);
    if (slot.done.load() < stamp) futexWait(slot.wakeups, seen, backoff.sleepNanoseconds());
    slot.sleeping.store(0);
  }
  return static_cast<CUresult>(slot.result);
}

}  // namespace vgpu
