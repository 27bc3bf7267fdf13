#include "intercept/session/thread.h"

#include <kj/debug.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <utility>

#include "intercept/session/call.h"

namespace vgpu {

namespace {

// Which slots are taken. In the program's own memory: the worker need not know.
std::array<std::atomic<bool>, slotCount> takenSlots;

// A slot for this thread; waits for one where 256 threads call at once.
uint16_t takeSlot() {
  for (;;) {
    for (uint16_t slot = 0; slot < slotCount; ++slot) {
      bool free = false;
      if (!takenSlots[slot].load(std::memory_order_relaxed) &&
          takenSlots[slot].compare_exchange_strong(free, true, std::memory_order_acquire))
        return slot;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
}

}  // namespace

namespace {

// The main thread's state is never freed: static destructors, which run after thread-local ones, may still call CUDA.
struct Owner {
  Thread** thread = nullptr;
  ~Owner() {
    if (gettid() != getpid()) delete std::exchange(*thread, nullptr);
  }
};
thread_local Owner owner;

}  // namespace

thread_local constinit Thread* Thread::known = nullptr;
thread_local constinit bool Thread::ownDefaultStream = false;

Thread& Thread::first(Session& session) {
  known = new Thread(session);
  owner.thread = &known;
  return *known;
}

Thread::Thread(Session& session) : session(session), slotIndex(takeSlot()) {}

Thread::~Thread() { takenSlots[slotIndex].store(false, std::memory_order_release); }

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
  }
  if (handle == 0) return nullable ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
  if (session.handles.find(kind, handle) != nullptr) return CUDA_SUCCESS;
  return kind == api::Kind::CONTEXT ? CUDA_ERROR_INVALID_CONTEXT : CUDA_ERROR_INVALID_HANDLE;
}

CUresult Thread::perThreadStream(uint64_t& handle) {
  uint64_t& own = ownStreams[device()];
  if (own == 0 || session.handles.find(api::Kind::STREAM, own) == nullptr) {
    uint64_t made = create(api::Kind::STREAM);
    Call<api::Cuda::StreamCreateParams> frame(*this, api::Method::streamCreate);
    frame->setPhStream(made);
    if (CUresult error = frame.post()) return error;
    own = made;
  }
  handle = own;
  return CUDA_SUCCESS;
}

}  // namespace vgpu
