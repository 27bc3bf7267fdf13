// Managed memory in threads and handlers that block signals, also SIGSEGV: a touch of it raises no signal that the program notices. The
// program sees the signal masks that it has set itself.
#include <pthread.h>
#include <sys/wait.h>

#include <csetjmp>
#include <csignal>
#include <thread>

#include "program.h"

__global__ void write(int* data, int value) { *data = value; }

namespace {

int* shared = nullptr;  // managed

// The device has written it and holds the page.
bool isTouched(int value) {
  write<<<1, 1>>>(shared, value);
  CHECK(cudaDeviceSynchronize());
  return EXPECT(*shared == value);
}

bool isBlocked(int signal) {
  sigset_t now;
  return EXPECT(pthread_sigmask(SIG_BLOCK, nullptr, &now) == 0) && sigismember(&now, signal) == 1;
}

sigset_t all() {
  sigset_t mask;
  sigfillset(&mask);
  return mask;
}

bool isTouchedWithSignalsBlocked() {
  const sigset_t mask = all();
  sigset_t before, onlyFaults, was;
  bool ok = EXPECT(pthread_sigmask(SIG_SETMASK, &mask, &before) == 0) & EXPECT(isBlocked(SIGSEGV)) & EXPECT(isBlocked(SIGUSR1));
  ok &= EXPECT(sigismember(&before, SIGSEGV) == 0) & isTouched(1);
  std::thread([&] { ok &= EXPECT(isBlocked(SIGSEGV)) & isTouched(2); }).join();
  ok &= EXPECT(pthread_sigmask(SIG_SETMASK, &before, &was) == 0) & EXPECT(sigismember(&was, SIGSEGV) == 1);
  ok &= EXPECT(!isBlocked(SIGSEGV)) & isTouched(3);
  sigemptyset(&onlyFaults);
  sigaddset(&onlyFaults, SIGSEGV);
  ok &= EXPECT(sigprocmask(SIG_BLOCK, &onlyFaults, nullptr) == 0) & EXPECT(isBlocked(SIGSEGV)) & EXPECT(!isBlocked(SIGUSR1));
  pausePoint();
  ok &= isTouched(4) & EXPECT(sigprocmask(SIG_UNBLOCK, &onlyFaults, nullptr) == 0) & EXPECT(!isBlocked(SIGSEGV));
  return ok & EXPECT(sigprocmask(-1, &onlyFaults, nullptr) == -1) & EXPECT(errno == EINVAL);
}

volatile bool wasHandled = false;

bool isTouchedInHandlers() {
  struct sigaction action {
  }, before{}, found{};
  action.sa_handler = [](int) { wasHandled = isBlocked(SIGSEGV) & (*shared == 5); };
  action.sa_mask = all();
  bool ok = EXPECT(sigaction(SIGUSR1, &action, &before) == 0) & EXPECT(sigaction(SIGUSR1, nullptr, &found) == 0);
  ok &= EXPECT(sigismember(&found.sa_mask, SIGSEGV) == 1) & EXPECT(sigismember(&before.sa_mask, SIGSEGV) == 0);
  write<<<1, 1>>>(shared, 5);
  CHECK(cudaDeviceSynchronize());
  raise(SIGUSR1);
  ok &= EXPECT(wasHandled) & EXPECT(!isBlocked(SIGSEGV));
  return ok & EXPECT(sigaction(SIGUSR1, &before, nullptr) == 0);
}

sigjmp_buf afterFault;

// The program's own SIGSEGV handler runs with the signal blocked, and touches managed memory.
bool isTouchedInTheHandlerOfFaults() {
  struct sigaction action {
  }, before{};
  action.sa_handler = [](int) {
    wasHandled = isBlocked(SIGSEGV) & (*shared == 6);
    siglongjmp(afterFault, 1);
  };
  bool ok = EXPECT(sigaction(SIGSEGV, &action, &before) == 0);
  for (int round = 0; round < 2; ++round) {
    wasHandled = false;
    write<<<1, 1>>>(shared, 6);
    CHECK(cudaDeviceSynchronize());
    int* volatile nowhere = nullptr;
    if (sigsetjmp(afterFault, 1) == 0) *nowhere = 1;
    ok &= EXPECT(wasHandled) & EXPECT(!isBlocked(SIGSEGV));
  }
  return ok & EXPECT(sigaction(SIGSEGV, &before, nullptr) == 0);
}

// Exit status of a child with a handler for its own fault.
int statusAfterFault(int flags, bool isBlocked) {
  const pid_t child = fork();
  if (child == 0) {
    struct sigaction action {};
    action.sa_handler = [](int) { wasHandled ? _exit(2) : void(wasHandled = true); };
    action.sa_flags = flags;
    sigaction(SIGSEGV, &action, nullptr);
    const sigset_t mask = all();
    if (isBlocked) pthread_sigmask(SIG_SETMASK, &mask, nullptr);
    wasHandled = isBlocked;
    int* volatile nowhere = nullptr;
    *nowhere = 1;
  }
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

bool endsByItsOwnFaults() {
  const int handledAgain = statusAfterFault(0, false), blocked = statusAfterFault(0, true),
            reset = statusAfterFault(SA_RESETHAND, false);
  return EXPECT(WIFEXITED(handledAgain)) & EXPECT(WIFSIGNALED(blocked) && WTERMSIG(blocked) == SIGSEGV) &
         EXPECT(WIFSIGNALED(reset) && WTERMSIG(reset) == SIGSEGV);
}

}  // namespace

int main() {
  CHECK(cudaMallocManaged(&shared, sizeof(int)));
  bool ok = isTouchedWithSignalsBlocked();
  ok &= isTouchedInHandlers();
  ok &= isTouchedInTheHandlerOfFaults();
  ok &= endsByItsOwnFaults();
  CHECK(cudaFree(shared));
  return verdict("managed-signals", ok);
}
