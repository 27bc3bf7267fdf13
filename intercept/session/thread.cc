#include "intercept/session/thread.h"

#include <kj/exception.h>
#include <limits.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "intercept/session/call.h"

namespace vgpu::client {

namespace {

// A thread's state is freed by the destructor of a pthread key. That runs after the destructors of the program's thread-local objects, and
// not at all in a thread that calls exit(), after which static destructors run: both may call CUDA, and must find the thread's context and
// streams as with a driver. The destructors of the program's own keys run in an unspecified order; they get two rounds before ours.
constexpr int lastRound = 3;
static_assert(lastRound < PTHREAD_DESTRUCTOR_ITERATIONS);
thread_local constinit int rounds = 0;

// If the system has no key left, or no memory for the key's value, threads' states are never freed.
pthread_key_t threadKey() {
  static const pthread_key_t key = [] {
    pthread_key_t made = PTHREAD_KEYS_MAX;
    pthread_key_create(&made, Thread::end);
    return made;
  }();
  return key;
}

}  // namespace

thread_local constinit Thread* Thread::known = nullptr;
thread_local constinit bool Thread::ownDefaultStream = false;

Thread& Thread::first(Session& session) {
  known = new Thread(session);
  pthread_setspecific(threadKey(), known);
  return *known;
}

// The main thread's state stays, also after pthread_exit(): static destructors may run on it. A child made by fork() has no other thread.
void Thread::end(void* state) {
  if (++rounds < lastRound) {
    pthread_setspecific(threadKey(), state);
  } else if (gettid() != getpid()) {
    delete std::exchange(known, nullptr);
  }
}

Thread::Thread(Session& session) : session(session), mark(session.gate.join()) {
  mark.thread.store(this, std::memory_order_relaxed);
  mark.threadId.store(gettid(), std::memory_order_release);
}

// The end of a thread enters the library as a call does: our own failures are caught here.
Thread::~Thread() {
  kj::runCatchingExceptions([this] { endOwnStreams(); });
  mark.threadId.store(0, std::memory_order_relaxed);
  session.gate.part(mark);
}

// The streams' work continues. If a device has faulted, its reset destroys its streams.
void Thread::endOwnStreams() {
  if (Session::find() != &session) return;  // in a forked child
  for (auto [context, own] : ownStreams)
    if (session.fault(handleDevice(own)) == CUDA_SUCCESS) destroyStream(own);
}

CUresult Thread::lookAtContext() {
  uint64_t ended = session.contexts.endedCount();
  if (!session.contexts.isLive(context())) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  endedWhenLive = ended;
  return CUDA_SUCCESS;
}

CUresult Thread::resolve(api::Kind kind, bool nullable, uint64_t& handle) {
  if (kind == api::Kind::STREAM) {
    if (handle == toWire(CU_STREAM_PER_THREAD) || (handle == 0 && ownDefaultStream)) return perThreadStream(handle);
    if (handle == toWire(CU_STREAM_LEGACY)) handle = 0;
    if (session.handles.find<api::Kind::STREAM>(handle) != nullptr) return CUDA_SUCCESS;  // fast path of every launch
    if (handle == 0 && nullable) return handle = ofContext().defaultStream, CUDA_SUCCESS;
  }
  if (handle == 0) return nullable ? CUDA_SUCCESS : noSuch(kind, handle);
  if (kind == api::Kind::FUNCTION) return resolveFunction(*this, owner(), handle);
  return session.handles.isLive(kind, handle) ? CUDA_SUCCESS : noSuch(kind, handle);
}

CUresult Thread::noSuch(api::Kind kind, uint64_t handle) const {
  const bool isGreen = kind == api::Kind::GREEN_CONTEXT;
  if (isGreen && handleKind(handle) == static_cast<unsigned>(kind)) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  if (session.greenContexts.hasEnded(handle)) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  return isGreen || (kind == api::Kind::CONTEXT && handle != 0) ? CUDA_ERROR_INVALID_CONTEXT : CUDA_ERROR_INVALID_HANDLE;
}

void Thread::lookUp(uint64_t context) {
  auto* state = session.handles.find<api::Kind::CONTEXT>(context);
  const uint64_t green = state == nullptr ? 0 : state->green.load(std::memory_order_relaxed);
  ofCurrent = {context, green == 0 ? context : session.primaryContext(handleDevice(context)), green,
               green == 0 ? 0 : state->defaultStream.load(std::memory_order_relaxed)};
}

CUresult Thread::destroyStream(uint64_t handle) {
  if (session.captures.isActive()) session.captures.leave(handle);
  auto last = [&](StreamState& stream) { stream.depth.completion.end(session.completionWords, handleDevice(handle)); };
  if (!session.handles.destroy<api::Kind::STREAM>(handle, last)) return CUDA_ERROR_INVALID_HANDLE;  // another thread has destroyed it
  Call<api::Cuda::StreamDestroyParams> frame(of(handle), api::Method::streamDestroy);
  frame->setHStream(handle);
  return frame.post();
}

void Thread::changed(api::Kind kind, uint64_t handle) {
  auto* function = kind == api::Kind::FUNCTION ? session.handles.find<api::Kind::FUNCTION>(handle) : nullptr;
  if (function != nullptr) function->replies().forget();
}

CUresult Thread::delayNewStream(uint64_t stream) {
  const uint64_t own = session.handles.find<api::Kind::STREAM>(stream)->context.load(std::memory_order_relaxed);
  const uint64_t owner = session.contexts.ownerOf(own);
  if (CUresult error = delayNewStream(stream, own)) return error;
  return owner == own ? CUDA_SUCCESS : delayNewStream(stream, owner);
}

CUresult Thread::delayNewStream(uint64_t stream, uint64_t context) {
  auto* state = session.handles.find<api::Kind::CONTEXT>(context);
  const uint64_t event = state == nullptr ? 0 : state->delayedBy.load(std::memory_order_relaxed);
  if (event == 0 || !session.handles.isLive(api::Kind::EVENT, event)) return CUDA_SUCCESS;
  Call<api::Cuda::StreamWaitEventParams> frame(of(stream), api::Method::streamWaitEvent);
  frame->setHStream(stream);
  frame->setHEvent(event);
  frame.inStream(stream);
  return frame.post();
}

CUresult Thread::perThreadStream(uint64_t& handle) {
  if (greenContext() != 0) return CUDA_ERROR_INVALID_HANDLE;  // the error that cuStreamGetCtx_v2 documents
  auto isLive = [&](const OwnStream& own) { return session.handles.find<api::Kind::STREAM>(own.stream) != nullptr; };
  auto own = std::ranges::find(ownStreams, context(), &OwnStream::context);
  if (own != ownStreams.end() && isLive(*own)) [[likely]] return handle = own->stream, CUDA_SUCCESS;
  std::erase_if(ownStreams, std::not_fn(isLive));  // removes streams of contexts that have ended
  NewHandle made(*this, api::Kind::STREAM);
  {
    Call<api::Cuda::StreamCreateParams> frame(*this, api::Method::streamCreate);
    frame->setPhStream(made.get());
    if (CUresult error = frame.post()) return error;
  }
  ownStreams.push_back({context(), handle = made.keep()});
  return delayNewStream(handle);
}

}  // namespace vgpu::client
