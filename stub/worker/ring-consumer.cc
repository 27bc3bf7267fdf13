#include "stub/worker/ring-consumer.h"

#include <kj/debug.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <thread>
#include <utility>

#include "cuda-frames.h"
#include "stub/worker/method-name.h"
#include "vgpu/api/effects.h"

namespace vgpu::stub {

namespace {

// If a program computes for less than this between calls, its worker is still awake at the next call. After this time an idle session uses
// no processor time.
constexpr uint64_t idleSpin = 2'000'000;  // nanoseconds

// Frames that must wait for the pending slow calls although these may be other callers': the reset of a GPU's whole state; and calls of a
// library, which may load modules, as some slow calls do (module-groups.h).
bool comesBehindSlowCalls(api::Method method) {
  switch (method) {
    case api::Method::contextReset:
    case api::Method::libraryCreate:
    case api::Method::libraryCreateAgain:
    case api::Method::libraryCapture:
    case api::Method::libraryCaptureAgain:
    case api::Method::libraryCall:
    case api::Method::libraryAsk:
    case api::Method::libraryPost:
    case api::Method::librarySet:
    case api::Method::libraryDestroy: return true;
    default: return false;
  }
}

// Tells the caller's thread that its frame is complete. Result and reply are written before `done` (release).
void complete(Execution& on, const Frame& frame, CUresult result, std::span<const capnp::word> reply) {
  Slot& slot = on.shared().slot(frame.slot);
  slot.result = result;
  slot.replyWords = static_cast<uint32_t>(reply.size());
  KJ_REQUIRE(reply.empty() || frame.slot < replyCount, "a call's slot has no room for its reply", frame.slot);
  if (!reply.empty())
    std::memcpy(on.shared().reply(frame.slot), reply.data(), std::min<size_t>(reply.size_bytes(), replyBytes));
  if (reply.size_bytes() > replyBytes) [[unlikely]]
    on.longReplies[frame.slot].assign(reply.begin(), reply.end());
  slot.done.store(frame.sequence());  // seq_cst: must not sink below the load of `sleeping`
  if (slot.sleeping.load() != 0) {
    slot.wakeups.fetch_add(1);
    wakeSleepers(on.shared().waking(), slot.wakeups);
  }
}

}  // namespace

RingConsumer::RingConsumer(Execution& on)
    : on(on),
      reader(on.shared(), on.gpu.executed.load(), on.device()),
      folding(on, reader, [this](const Frame& frame) { run(frame); }) {
  on.slow.setWake([this] { wake(); });
}

RingConsumer::~RingConsumer() { on.slow.setWake(nullptr); }

void RingConsumer::consume(const std::atomic<bool>& stop) {
  Backoff backoff(idleSpin);
  while (!stop.load(std::memory_order_relaxed))
    if (step(backoff, stop)) backoff = Backoff(idleSpin);
}

// Executes one frame, or several at once; false if there is none to execute.
bool RingConsumer::step(Backoff& backoff, const std::atomic<bool>& stop) {
  if (on.gpu.isAwaited()) [[unlikely]] on.gpu.pollAwaited();
  if (!on.slow.isEmpty()) [[unlikely]] on.slow.poll();
  if (!frame) frame = reader.next();
  if (!frame || mustWait()) {
    isBehind = false;
    if (!backoff.spin()) rest(backoff, stop);
    return false;
  }
  issue(stop);
  return true;
}

// A frame that finds the ring empty goes to the GPU at once. Frames that come while it is executed may be folded.
void RingConsumer::issue(const std::atomic<bool>& stop) {
  bool isFirst = !std::exchange(isBehind, true);
  if (isFirst) folding.begin();
  uint64_t end = frame->position;
  if ((!isFirst || folding.isForced()) && folding.mayFold(*frame)) end = folding.issue(*frame, stop);
  if (end == frame->position) {
    run(*frame);
    end += frame->bytes;
  } else {
    isBusy = true;
  }
  frame.reset();
  reader.release(end);
  on.gpu.executed.store(end);  // seq_cst: must not sink below the load of `awaiting`
  if (on.session.awaiting.load() != 0) [[unlikely]] on.session.wakeThreads();
}

// Whether frames of another ring must be executed first, or pending slow calls must end. A ring without a thread never executes any: a
// program that waits for it waits for itself.
bool RingConsumer::mustWait() const {
  if (!on.slow.isEmpty() && comesBehindSlowCalls(frame->method)) [[unlikely]] return true;
  if (frame->method != api::Method::awaitRing) [[likely]] return false;
  api::FrameReader<api::Cuda::AwaitRingParams> params(frame->words);
  if (params.getDevice() >= on.session.deviceCount() || params.getDevice() == on.device()) return false;
  return on.session.of(params.getDevice()).gpu.executed.load() < params.getPosition();
}

void RingConsumer::rest(Backoff& backoff, const std::atomic<bool>& stop) {
  uint64_t nanoseconds = backoff.sleepNanoseconds();
  if (on.gpu.isAwaited()) {
    nanoseconds = std::min<uint64_t>(nanoseconds, 1'000'000);
  } else {
    nanoseconds = isBusy ? 1'000'000 : 1'000'000'000;
  }
  const uint32_t bell = reader.bell();  // read before the conditions for which the bell is rung are checked
  if (stop.load() || on.slow.isDue()) return;
  if (frame) {
    awaitOthers(bell, nanoseconds);
  } else {
    reader.sleep(bell, nanoseconds);
    if (reader.bell() != bell) backoff = Backoff(idleSpin);  // frames come soon, even if none has come yet (RingWriter::wakeConsumer)
  }
  if (isBusy) watch();
}

// Sleeps until a frame of another ring has been executed, or a slow call is done.
void RingConsumer::awaitOthers(uint32_t bell, uint64_t nanoseconds) {
  on.session.awaiting.fetch_add(1);  // seq_cst, like its load in issue()
  if (mustWait()) reader.awaitBell(bell, nanoseconds);
  on.session.awaiting.fetch_sub(1);
}

void RingConsumer::run(const Frame& executed, bool isAgain) {
  reply.reset();
  auto& info = api::infoOf(executed.method);
  if (info.replay == api::Replay::BUILD && !on.gpu.folded.isEmpty()) forgetNamed(executed);
  CUresult result = on.execute(executed.method, executed.words, executed.position, executed.slot, reply);
  if (auto call = reply.takeSlowCall()) return putOff(executed, std::move(*call), isAgain);
  settle(executed, result, isAgain);
}

// Later frames of the ring are executed meanwhile: no frame can name what this one makes before the program has its reply.
void RingConsumer::putOff(const Frame& frame, SlowCall call, bool isAgain) {
  auto words = std::make_shared<const kj::Array<capnp::word>>(kj::heapArray(frame.words));
  auto work = call.work;
  auto end = [this, late = frame, words, call = std::move(call), isAgain](CUresult result) mutable {
    late.words = words->asPtr();
    reply.reset();
    settle(late, on.end(call, result, reply), isAgain);
  };
  on.slow.add(work, end, methodName(frame.method));
}

void RingConsumer::settle(const Frame& executed, CUresult result, bool isAgain) {
  auto& info = api::infoOf(executed.method);
  if (result == CUDA_ERROR_OUT_OF_MEMORY && (!isAgain || !on.gpu.later.isEmpty()) && runAgain(executed)) return;
  if (result != CUDA_SUCCESS && !info.slabs.empty()) [[unlikely]] on.freeSlabs(executed.method, executed.words);
  if (isSticky(result)) on.session.noteFault(result);
  if (!info.noWork) isBusy = true;
  if (info.route == api::Route::POST) {
    if (result != CUDA_SUCCESS) on.session.noteDeferred(on.device(), result);
  } else if (!reply.isLeftToGpu() || result != CUDA_SUCCESS) {
    complete(on, executed, result, reply.words());  // the reply has the log of a refused module
  }
}

// Folded graphs end before an object that they name is destroyed or changed.
void RingConsumer::forgetNamed(const Frame& executed) {
  if (api::infoOf(executed.method).isSetting || executed.method == api::Method::contextReset) on.gpu.folded.dropAll();
  api::visitEffects(executed.method, executed.words, [&](const api::EffectOn& effect) {
    if (effect.effect == api::Effect::destroys || effect.effect == api::Effect::changes)
      on.gpu.folded.forget(effect.kind, effect.handle);
  });
}

// Executes a frame again that failed for lack of memory. Objects that the program has destroyed free their memory when the GPU has passed
// the last pending fence, or a later one if work was added meanwhile. Folded graphs are dropped now, and free theirs when the GPU has
// passed all work so far. Then the frame is executed once more. An allocation does not wait for graphs, because the running work may wait
// for the program. False if no memory will be freed, or only later and no caller waits for a reply.
bool RingConsumer::runAgain(const Frame& executed) {
  const bool hadGraphs = on.gpu.folded.dropAll(), isForMemory = takesMemory(executed.method);
  if (!hadGraphs && on.gpu.later.isEmpty()) return false;
  if (on.gpu.later.isEmpty() && (isForMemory || on.gpu.progress.isDone())) {
    run(executed, true);
    return true;
  }
  if (api::infoOf(executed.method).route != api::Route::CALL) return false;
  uint64_t fence = on.gpu.progress.lastFence();
  if (hadGraphs && !isForMemory && on.gpu.progress.fence(fence) != CUDA_SUCCESS) return false;
  auto words = std::make_shared<const kj::Array<capnp::word>>(kj::heapArray(executed.words));
  on.gpu.later.add(fence, [this, again = executed, words](CUresult) mutable {
    again.words = words->asPtr();
    run(again, true);
  });
  return true;
}

// A context that a fault has ended will never write its completion words, so the error is stored where every waiter looks.
void RingConsumer::watch() {
  if (on.gpu.isEnded()) return;
  CUresult state = on.gpu.query();
  if (state == CUDA_ERROR_NOT_READY) return;
  if (state != CUDA_SUCCESS) on.session.noteFault(state);
  isBusy = false;
  if (!on.session.prints) return;
  on.collectOutput();  // the program's next launch sees it
  on.session.tellOutput();
}

}  // namespace vgpu::stub
