// The session's state of one program thread: its mark of the gate, its current contexts. Thread-local; made at the thread's first
// call; the mark is given back at the thread's end, behind its last destructor (thread.cc).
#pragma once

#include <utility>
#include <vector>

#include "intercept/session/memory/found-memory.h"
#include "intercept/session/session.h"

namespace vgpu::client {

class Thread;

// Whose call it is, and the device that executes it.
struct Target {
  Thread& thread;
  unsigned device;
  Target(Thread& thread);  // on the thread's current device
  Target(Thread& thread, unsigned device) : thread(thread), device(device) {}
};

// Pinned memory belongs to no device. All frames that are about it are executed by this one, so they keep their order.
constexpr unsigned hostMemoryDevice = 0;

class Thread {
 public:
  // The calling thread. The session must be open.
  static Thread& current(Session& session) { return known != nullptr ? *known : first(session); }
  // In a child made by fork(), whose parent's session this thread's state is of. It stays.
  static void forget() { known = nullptr; }

  Session& session;
  Gate::Mark& mark;

  // Small, and no other live thread's.
  uint32_t number() const { return mark.number; }
  // The staging slab that this thread tries first, different from other threads'.
  uint32_t firstSlab() const { return number() * 8 % slabCount; }
  // Of the current context; 0 if the thread has none.
  unsigned device() const { return contextStack.empty() ? 0 : handleDevice(contextStack.back()); }
  // The device of a stream (a resolved handle), on which its work runs and is waited for, whichever context is current. The
  // legacy default stream (0) is the current context's.
  unsigned deviceOf(uint64_t stream) const { return stream == 0 ? device() : handleDevice(stream); }

  // A call on a device, and on the device of an object (a resolved handle; 0: the current device).
  Target on(unsigned device) { return {*this, device}; }
  Target of(uint64_t handle) { return {*this, deviceOf(handle)}; }

  std::vector<uint64_t> contextStack;  // virtual handles; the last is current

  // While this thread takes a faulted context down, its calls are sent; other threads' calls return the fault.
  bool takesDownContext = false;
  // It runs the functions of the program that streams wait for.
  bool runsHostFunctions = false;
  // It has touched managed memory that it did not have (ManagedMemory::runInStream).
  bool hasTouched = false;

  FoundMemory foundMemory;

  // While set, this thread's frames use managed memory (ManagedMemory): see UsesManaged.
  bool usesManaged = false;

  // While set, the null stream means the calling thread's own: it has called the per-thread flavour of an entry.
  static thread_local constinit bool ownDefaultStream;

  // The current context; 0 if the thread has none.
  uint64_t context() const { return contextStack.empty() ? 0 : contextStack.back(); }
  // Whether a stream (a resolved handle) is of the context that an object was made in.
  bool isInContextOf(const ObjectHead& object, uint64_t stream) {
    auto* state = session.handles.find<api::Kind::STREAM>(stream);
    const uint64_t made = object.context.load(std::memory_order_relaxed);
    const uint64_t of = state == nullptr ? owner() : state->context.load(std::memory_order_relaxed);
    return of == made || session.contexts.ownerOf(of) == made;
  }
  // The one that owns what is made now, streams excepted: of a green context its device's primary one.
  uint64_t owner() { return ofContext().owner; }
  // The green context that is current; 0 if none is.
  uint64_t greenContext() { return ofContext().green; }
  // CUDA_ERROR_CONTEXT_IS_DESTROYED if the current context has ended since it became current.
  CUresult checkContext() {
    return session.contexts.endedCount() == endedWhenLive ? CUDA_SUCCESS : lookAtContext();
  }
  // Pushes `context`, a live one.
  CUresult makeCurrent(uint64_t context) {
    contextStack.push_back(context);
    contextChanged();
    return CUDA_SUCCESS;
  }
  // Pops the current one.
  CUresult leaveCurrent() {
    contextStack.pop_back();
    contextChanged();
    return CUDA_SUCCESS;
  }
  // To be called when another context has become current.
  void contextChanged() { endedWhenLive = UINT64_MAX; }

  // Which captures of streams forbid this thread what is unsafe (cuThreadExchangeStreamCaptureMode).
  CUstreamCaptureMode captureMode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  // Success if the call may be executed: no stream is captured that it would disturb.
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
  // The object of that handle has changed: known replies about it are dropped.
  void changed(api::Kind kind, uint64_t handle);

  // Checks a handle that the program gave. Built-in streams become the handles used in frames (0: the legacy default stream), a
  // library's kernel becomes its function in the current context. CUDA's error for one that is not live.
  CUresult resolve(api::Kind kind, bool nullable, uint64_t& handle);

  // This thread's own default stream of the current context (CU_STREAM_PER_THREAD), made at its first use; it ends with the thread.
  CUresult perThreadStream(uint64_t& handle);

  // A stream that has just been made waits for what its context's work waits for (cuCtxWaitEvent).
  CUresult delayNewStream(uint64_t stream);

  // Destroys a stream (a resolved handle); its work continues.
  CUresult destroyStream(uint64_t handle);

  explicit Thread(Session& session);
  ~Thread();
  static void end(void* state);  // the destructor of the key under which threads have theirs

 private:
  static Thread& first(Session& session);
  // What is known of a context: `of`.
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

  static thread_local constinit Thread* known;  // trivial, so that reading it is one load
  uint64_t endedWhenLive = UINT64_MAX;           // how many contexts had ended when the current one was last found live
  OfContext ofCurrent;
  struct OwnStream {
    uint64_t context, stream;
  };
  std::vector<OwnStream> ownStreams;  // one of each context in which it was used
};

inline Target::Target(Thread& thread) : thread(thread), device(thread.device()) {}

// While it lives, and `managed` is true, frames of this thread use managed memory, as their addresses say.
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

// A new handle of the current device, given back by the destructor unless keep() was called, so that a failed call leaves none.
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
