#include <dlfcn.h>
#include <kj/debug.h>
#include <ucontext.h>

#include <atomic>
#include <cerrno>
#include <mutex>

#include "intercept/session/failure.h"
#include "intercept/session/managed/page-watch.h"
#include "intercept/session/managed/touch-faults.h"
#include "intercept/session/thread.h"

namespace vgpu::client {

std::atomic<bool> touchesAreServed{false};

namespace {

using SetAction = int (*)(int, const struct sigaction*, struct sigaction*);
using SetMask = int (*)(int, const sigset_t*, sigset_t*);

// The C library's sigaction, which ours of the same name hides.
SetAction systemAction() {
  static const auto found = reinterpret_cast<SetAction>(dlsym(RTLD_NEXT, "sigaction"));
  return found;
}
SetMask systemMask() {
  static const auto found = reinterpret_cast<SetMask>(dlsym(RTLD_NEXT, "pthread_sigmask"));
  return found;
}

bool isIn(const sigset_t& mask, int number) { return sigismember(&mask, number) == 1; }

// Translates a mask of the program to the kernel's.
sigset_t realMask(sigset_t mask) {
  isIn(mask, SIGSEGV) ? sigaddset(&mask, SIGSTKFLT) : sigdelset(&mask, SIGSTKFLT);
  sigdelset(&mask, SIGSEGV);
  return mask;
}

// Translates a mask of the kernel to the program's.
sigset_t programMask(sigset_t mask) {
  isIn(mask, SIGSTKFLT) ? sigaddset(&mask, SIGSEGV) : sigdelset(&mask, SIGSEGV);
  return mask;
}

// The program may have been started with SIGSEGV blocked, which all its threads would inherit.
__attribute__((constructor)) void takeInheritedMask() {
  sigset_t inherited;
  if (systemMask()(SIG_BLOCK, nullptr, &inherited) != 0 || !isIn(inherited, SIGSEGV)) return;
  inherited = realMask(inherited);
  systemMask()(SIG_SETMASK, &inherited, nullptr);
}

std::mutex mutex;  // leaf lock
struct sigaction programs {};  // the program's action, once the handler is installed

// `toucher`: the touching thread; 0: the calling one.
bool serve(uint64_t address, bool writes, pid_t toucher) {
  Session* session = Session::find();
  if (session == nullptr || !session->managed.mayHold(address)) return false;
  bool brought = false;
  CUresult result = answerOf([&] {
    brought = session->managed.touch(Thread::current(*session), address, writes,
                                     toucher == 0 ? nullptr : session->gate.findThread(toucher));
    return CUDA_SUCCESS;
  });
  return brought && result == CUDA_SUCCESS;
}

// Does what would happen without our handler in a thread that has blocked the signals `blocked`.
void passOn(int number, siginfo_t* info, void* context, const sigset_t& blocked) {
  struct sigaction action;
  {
    std::lock_guard lock(mutex);
    action = programs;
    if ((action.sa_flags & SA_RESETHAND) != 0) programs.sa_handler = SIG_DFL;
  }
  if (action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN && !isIn(blocked, SIGSTKFLT)) {
    if ((action.sa_flags & SA_NODEFER) == 0) sigaddset(&action.sa_mask, SIGSEGV);
    const sigset_t meanwhile = realMask(action.sa_mask);
    systemMask()(SIG_BLOCK, &meanwhile, nullptr);  // until the return from this signal
    return (action.sa_flags & SA_SIGINFO) != 0 ? action.sa_sigaction(number, info, context) : action.sa_handler(number);
  }
  action.sa_handler = SIG_DFL;  // a fault cannot be ignored
  systemAction()(number, &action, nullptr);  // the instruction faults again, which ends the process
}

void onFault(int number, siginfo_t* info, void* context) {
  const int error = errno;
  constexpr greg_t writeFault = 2;  // bit of the processor's error code: the access was a write
  const auto& interrupted = *static_cast<ucontext_t*>(context);
  bool writes = (interrupted.uc_mcontext.gregs[REG_ERR] & writeFault) != 0;
  bool isTouch = info->si_code == SEGV_ACCERR && serve(reinterpret_cast<uint64_t>(info->si_addr), writes, 0);
  errno = error;
  if (!isTouch) passOn(number, info, context, interrupted.uc_sigmask);
}

}  // namespace

void serveTouches() {
  std::lock_guard lock(mutex);
  if (servesTouches()) return;
  struct sigaction ours {};
  ours.sa_sigaction = onFault;
  // Not on an alternate stack, which a program makes small: bringing bytes needs as much stack as a copy.
  ours.sa_flags = SA_SIGINFO | SA_RESTART | SA_NODEFER;  // NODEFER: the program's action may touch managed memory
  sigemptyset(&ours.sa_mask);
  KJ_REQUIRE(systemAction()(SIGSEGV, &ours, &programs) == 0, "no handler for managed memory can be installed", errno);
  programs.sa_mask = programMask(programs.sa_mask);
  PageWatch::start(serve);
  touchesAreServed.store(true, std::memory_order_release);
}

int setAction(int number, const struct sigaction* action, struct sigaction* before) {
  struct sigaction real {};
  if (action != nullptr) {
    real = *action;
    real.sa_mask = realMask(action->sa_mask);
  }
  const struct sigaction* given = action == nullptr ? nullptr : &real;
  if (number != SIGSEGV || !touchesAreServed.load(std::memory_order_acquire)) {
    const int result = systemAction()(number, given, before);
    if (result == 0 && before != nullptr) before->sa_mask = programMask(before->sa_mask);
    return result;
  }
  std::lock_guard lock(mutex);
  const struct sigaction was = programs;
  if (action != nullptr) programs = *action;
  if (before != nullptr) *before = was;
  return 0;
}

int setMask(int how, const sigset_t* mask, sigset_t* before) {
  const sigset_t real = mask == nullptr ? sigset_t{} : realMask(*mask);
  const int result = systemMask()(how, mask == nullptr ? nullptr : &real, before);
  if (result == 0 && before != nullptr) *before = programMask(*before);
  return result;
}

bool bringForSystem(const void* memory, uint64_t bytes, bool writes) {
  if (!servesTouches()) return false;
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
