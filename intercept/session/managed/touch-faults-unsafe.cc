#include <dlfcn.h>
#include <kj/debug.h>
#include <ucontext.h>

#include <atomic>
#include <cerrno>
#include <mutex>

#include "intercept/session/failure.h"
#include "intercept/session/managed/touch-faults.h"
#include "intercept/session/thread.h"

namespace vgpu::client {

namespace {

using SetAction = int (*)(int, const struct sigaction*, struct sigaction*);

// The C library's, behind our own of that name.
SetAction systemAction() {
  static const auto found = reinterpret_cast<SetAction>(dlsym(RTLD_NEXT, "sigaction"));
  return found;
}

std::mutex mutex;  // a leaf
std::atomic<bool> serves{false};
struct sigaction programs {};  // the program's action, once we serve

bool serve(uint64_t address, bool writes) {
  Session* session = Session::find();
  if (session == nullptr || !session->managed.mayHold(address)) return false;
  bool brought = false;
  CUresult result = answerOf([&] {
    brought = session->managed.touch(Thread::current(*session), address, writes);
    return CUDA_SUCCESS;
  });
  return brought && result == CUDA_SUCCESS;
}

// What would have happened without us.
void passOn(int number, siginfo_t* info, void* context) {
  struct sigaction action;
  {
    std::lock_guard lock(mutex);
    action = programs;
  }
  if ((action.sa_flags & SA_SIGINFO) != 0) return action.sa_sigaction(number, info, context);
  if (action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN) return action.sa_handler(number);
  action.sa_handler = SIG_DFL;  // the kernel ignores no fault either
  systemAction()(number, &action, nullptr);  // the same instruction faults again, and ends the process
}

void onFault(int number, siginfo_t* info, void* context) {
  const int error = errno;
  constexpr greg_t writeFault = 2;  // of the processor's error code: the access was a write
  bool writes = (static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_ERR] & writeFault) != 0;
  bool isTouch = info->si_code == SEGV_ACCERR && serve(reinterpret_cast<uint64_t>(info->si_addr), writes);
  errno = error;
  if (!isTouch) passOn(number, info, context);
}

}  // namespace

void serveTouches() {
  std::lock_guard lock(mutex);
  if (serves.load(std::memory_order_relaxed)) return;
  struct sigaction ours {};
  ours.sa_sigaction = onFault;
  // Not on an alternate stack, which a program makes for few frames: bringing bytes takes as much stack as a copy.
  ours.sa_flags = SA_SIGINFO | SA_RESTART;
  sigemptyset(&ours.sa_mask);
  KJ_REQUIRE(systemAction()(SIGSEGV, &ours, &programs) == 0, "no handler for managed memory can be installed", errno);
  serves.store(true, std::memory_order_release);
}

int setAction(int number, const struct sigaction* action, struct sigaction* before) {
  if (number != SIGSEGV || !serves.load(std::memory_order_acquire)) return systemAction()(number, action, before);
  std::lock_guard lock(mutex);
  struct sigaction was = programs;
  if (action != nullptr) programs = *action;
  if (before != nullptr) *before = was;
  return 0;
}

bool bringForSystem(const void* memory, uint64_t bytes, bool writes) {
  if (!serves.load(std::memory_order_relaxed)) return false;
  Session* session = Session::find();
  auto address = reinterpret_cast<uint64_t>(memory);
  if (session == nullptr || bytes == 0 || !(session->managed.mayHold(address) || session->managed.mayHold(address + bytes - 1)))
    return false;
  CUresult result = answerOf([&] {
    session->managed.touchAll(Thread::current(*session), address, bytes, writes);
    return CUDA_SUCCESS;
  });
  return result == CUDA_SUCCESS;
}

uint64_t managedBytesFrom(const void* memory) {
  Session* session = Session::find();
  auto address = reinterpret_cast<uint64_t>(memory);
  return session == nullptr ? 0 : session->managed.bytesFrom(address);
}

}  // namespace vgpu::client
