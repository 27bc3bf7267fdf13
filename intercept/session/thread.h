// The session's state of one program thread: its mark of the gate, its current contexts. Thread-local; created at the thread's first call;
// the mark is given back when the thread ends, after the thread's last destructor (thread.cc).
#pragma once

#include <utility>
#include <vector>

#include "intercept/session/memory/found-memory.h"
#include "intercept/session/session.h"

namespace vgpu::client {

class Thread;

// The thread that makes a call, and the device that executes it.
struct Target {
  Thread& thread;
  unsigned device;
  Target(Thread& thread);  // on the thread's current device
  Target(Thread& thread, unsigned device) : thread(thread), device(device) {}
};

// Pinned memory belongs to no device. This device executes all frames about it, so that they keep their order.
constexpr unsigned hostMemoryDevice = 0;

class Thread {
 public:
  // The calling thread. The session must be open.
  static Thread& current(Session& session) { return known != nullptr ? *known : first(session); }
  // In a child made by fork(): this thread's state belongs to the parent's session. It is abandoned, not destroyed.
  static void forget() { known = nullptr; }

  Session& session;
  Gate::Mark& mark;

  // A small number, unique among live threads.
  uint32_t number() const { return mark.number; }
  // The staging slab that this thread tries first; other threads start elsewhere.
  uint32_t firstSlab() const { return number() * 8 % slabCount; }
  // The device of the current context; 0 if the thread has none.
  unsigned device() const { return contextStack.empty() ? 0 : handleDevice(contextStack.back()); }
  // The device of a stream (a resolved handle), which executes its work whichever context is current. The legacy default stream (0) is the
  // current context's.
  unsigned deviceOf(uint64_t stream) const { return stream == 0 ? device() : handleDevice(stream); }

  // The target of a call: a device, or the device of an object (a resolved handle; 0: the current device).
  Target on(unsigned device) { return {*this, device}; }
  Target of(uint64_t handle) { return {*this, deviceOf(handle)}; }

  std::vector<uint64_t> contextStack;  // virtual handles; the last is current

  // Set while this thread ends a faulted context: its calls are sent, while those of other threads return the fault.
  bool takesDownContext = false;
  // Whether this thread runs the program's host functions.
  bool runsHostFunctions = false;
  // Whether it has accessed managed memory that the host did not have (ManagedMemory::runInStream).
  bool hasTouched = false;

  FoundMemory foundMemory;

  // While true, this thread's frames use managed memory: see UsesManaged.
  bool usesManaged = false;

  // While true, the null stream means the calling thread's default stream: a _ptsz or _ptds entry was called.
  static thread_local constinit bool ownDefaultStream;

  // The current context; 0 if the thread has none.
  uint64_t context() const { return contextStack.empty() ? 0 : contextStack.back(); }
  // Whether a stream (a resolved handle) belongs to the context in which the object was made.
  bool isInContextOf(const ObjectHead& object, uint64_t stream) {
    auto* state = session.handles.find<api::Kind::STREAM>(stream);
    const uint64_t made = object.context.load(std::memory_order_relaxed);
    const uint64_t of = state == nullptr ? owner() : state->context.load(std::memory_order_relaxed);
    return of == made || session.contexts.ownerOf(of) == made;
  }
  // The context that owns objects made now, except streams: for a green context its device's primary context.
  uint64_t owner() { return ofContext().owner; }
  // The current green context; 0 if the current context is none.
  uint64_t greenContext() { return ofContext().green; }
  // CUDA_ERROR_CONTEXT_IS_DESTROYED if the current context has ended since it became current.
  CUresult checkContext() {
    return session.contexts.endedCount() == endedWhenLive ? CUDA_SUCCESS : lookAtContext();
  }
  // Pushes `context`, which is live.
  CUresult makeCurrent(uint64_t context) {
    contextStack.push_back(context);
    contextChanged();
    return CUDA_SUCCESS;
  }
  // Pops the current context.
  CUresult leaveCurrent() {
    contextStack.pop_back();
    contextChanged();
    return CUDA_SUCCESS;
  }
  // Call this when another context has become current.
  void contextChanged() { endedWhenLive = UINT64_MAX; }

  // Decides which captures forbid this thread unsafe calls (cuThreadExchangeStreamCaptureMode).
  CUstreamCaptureMode captureMode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  // Success if the call may be executed: it would disturb no capture.
  CUresult refuseCaptured(uint64_t stream) {
    return session.captures.isActive() ? session.captures.refuse(*this, stream) : CUDA_SUCCESS;
  }
  CUresult refuseUnsafe() { return session.captures.isActive() ? session.captures.refuseUnsafe(*this) : CUDA_SUCCESS; }

  // A new handle of `kind` in the current context.
  uint64_t create(api::Kind kind) { return session.handles.create(kind, device(), kind == api::Kind::STREAM ? context() : owner()); }
  void destroy(api::Kind kind, uint64_t handle) {
    session.handles.destroy(handle);
    if (kind != api::Kind::EVENT) return;
    session.elapsedTimes.forget(handle);
    session.shared.freed(handle);
    if (session.captures.concernsEvents()) session.captures.forgetEvent(handle);
  }
  // The object has changed: drops known replies about it.
  void changed(api::Kind kind, uint64_t handle);

  // Checks a handle that the program passed. Built-in streams become the handles used in frames (0: the legacy default stream), a library's
  // kernel becomes its function in the current context. CUDA's error if the handle is not live.
  CUresult resolve(api::Kind kind, bool nullable, uint64_t& handle);

  // The thread's own default stream of the current context (CU_STREAM_PER_THREAD), made at its first use; it ends with the thread.
  CUresult perThreadStream(uint64_t& handle);

  // Makes a new stream wait for the event that its context's streams wait for (cuCtxWaitEvent).
  CUresult delayNewStream(uint64_t stream);

  // Destroys a stream (a resolved handle); its work continues.
  CUresult destroyStream(uint64_t handle);

  explicit Thread(Session& session);
  ~Thread();
  static void end(void* state);  // the destructor of the pthread key that holds each thread's state

 private:
  static Thread& first(Session& session);
  // Facts about the context `of`.
  struct OfContext {
    uint64_t of = 0, owner = 0, green = 0, defaultStream = 0;
  };
  const OfContext& ofContext() {
    if (ofCurrent.of != context()) [[unlikely]] lookUp(context());
    return ofCurrent;
  }
  void lookUp(uint64_t context);
  CUresult lookAtContext();
  CUresult noSuch(api::Kind kind, uint64_t handle) const;
  CUresult delayNewStream(uint64_t stream, uint64_t context);
  void endOwnStreams();

  static thread_local constinit Thread* known;  // trivial type, so that reading it is one load
  uint64_t endedWhenLive = UINT64_MAX;           // Contexts::endedCount() when the current context was last found live
  OfContext ofCurrent;
  struct OwnStream {
    uint64_t context, stream;
  };
  std::vector<OwnStream> ownStreams;  // one for each context in which it was used
};

inline Target::Target(Thread& thread) : thread(thread), device(thread.device()) {}

// During its lifetime, if `managed`, this thread's frames use managed memory, which their addresses name.
class UsesManaged {
 public:
  UsesManaged(Thread& thread, bool managed) : thread(thread), before(std::exchange(thread.usesManaged, managed)) {}
  ~UsesManaged() { thread.usesManaged = before; }
  UsesManaged(const UsesManaged&) = delete;
  UsesManaged& operator=(const UsesManaged&) = delete;

 private:
  Thread& thread;
  const bool before;
};

// A new handle of the current device, destroyed by the destructor unless keep() is called, so that a failed call leaves none.
class NewHandle {
 public:
  NewHandle(Thread& thread, api::Kind kind) : handles(thread.session.handles), handle(thread.create(kind)) {}
  ~NewHandle() {
    if (handle != 0) handles.destroy(handle);
  }
  NewHandle(const NewHandle&) = delete;
  NewHandle& operator=(const NewHandle&) = delete;

  uint64_t get() const { return handle; }
  uint64_t keep() { return std::exchange(handle, 0); }

 private:
  HandleTable& handles;
  uint64_t handle;
};

}  // namespace vgpu::client
