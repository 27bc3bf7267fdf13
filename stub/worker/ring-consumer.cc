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

// A program that computes between its calls for less than this finds its worker awake. A session that does nothing costs no
// processor time after it.
constexpr uint64_t idleSpin = 2'000'000;  // nanoseconds

// Frames that others' slow calls could be about, whoever waits for their reply: the end of all that the GPU has; and calls of a
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

// Tells the caller's thread that its frame is complete. The order matters: result and answer before `done` (release).
void complete(Execution& on, const Frame& frame, CUresult result, std::span<const capnp::word> reply) {
  Slot& slot = on.shared().slot(frame.slot);
  slot.result = result;
  slot.replyWords = static_cast<uint32_t>(reply.size());
  KJ_REQUIRE(reply.empty() || frame.slot < replyCount, "a call whose slot has no room for its answer", frame.slot);
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

// A frame that finds the ring empty goes to the GPU at once. Those that come while it is executed may be folded.
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

// Whether frames of another ring must be executed first, or the slow calls that are under way. Of a ring that has no thread none
// ever are: that program waits for itself.
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
  const uint32_t bell = reader.bell();  // before the look at what it is rung for
  if (stop.load() || on.slow.isDue()) return;
  if (frame) {
    awaitOthers(bell, nanoseconds);
  } else {
    reader.sleep(bell, nanoseconds);
    if (reader.bell() != bell) backoff = Backoff(idleSpin);  // frames come soon, if none has (RingWriter::wakeConsumer)
  }
  if (isBusy) watch();
}

// Sleeps until a frame of another ring has been executed, or a slow call is done.
void RingConsumer::awaitOthers(uint32_t bell, uint64_t nanoseconds) {
  on.session.awaiting.fetch_add(1);  // seq_cst, as its load: see issue()
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

// What follows in the ring is executed meanwhile: nobody knows of what this frame makes before it has its reply.
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
    complete(on, executed, result, reply.words());  // a refused module's log comes with the refusal
  }
}

// Graphs end before what they name is destroyed or changed.
void RingConsumer::forgetNamed(const Frame& executed) {
  if (api::infoOf(executed.method).isSetting || executed.method == api::Method::contextReset) on.gpu.folded.dropAll();
  api::visitEffects(executed.method, executed.words, [&](const api::EffectOn& effect) {
    if (effect.effect == api::Effect::destroys || effect.effect == api::Effect::changes)
      on.gpu.folded.forget(effect.kind, effect.handle);
  });
}

// It lacked memory. What the program has destroyed gives its memory back when the GPU has passed the last fence, or a later one if work
// has come meanwhile, and graphs, which end for it, when the GPU has passed all work so far: then it is executed once more. Memory does
// not wait for graphs, because what runs may wait for the program. False if no memory is coming back, or only later and nobody waits for
// a reply.
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

// A context that a fault has ended will never write its completions, so its error is put where every waiter looks.
void RingConsumer::watch() {
  if (on.gpu.isEnded()) return;
  CUresult state = on.gpu.query();
  if (state == CUDA_ERROR_NOT_READY) return;
  if (state != CUDA_SUCCESS) on.session.noteFault(state);
  isBusy = false;
  if (!on.session.prints) return;
  on.collectOutput();  // of which the program's next launch is told
  on.session.tellOutput();
}

}  // namespace vgpu::stub
