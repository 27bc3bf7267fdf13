#include "intercept/session/thread.h"

#include <unistd.h>

#include <utility>

#include "intercept/session/call.h"

namespace vgpu {

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

Thread& Thread::first(Session& session) {
  known = new Thread(session);
  owner.thread = &known;
  return *known;
}

Thread::Thread(Session& session) : session(session), mark(session.gate.join()) {}

Thread::~Thread() { session.gate.part(mark); }

CUresult Thread::resolve(api::Kind kind, bool nullable, uint64_t& handle) {
  if (kind == api::Kind::STREAM) {
    if (handle == toWire(CU_STREAM_PER_THREAD)) return perThreadStream(handle);
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
