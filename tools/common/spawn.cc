#include "tools/common/spawn.h"

#include <fcntl.h>
#include <kj/debug.h>
#include <kj/io.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "vgpu/base/fail.h"

namespace vgpu {
namespace {

sigset_t ignoredAtStart;  // set once in main(), before any thread starts

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (const std::string& text : texts) result.push_back(const_cast<char*>(text.c_str()));
  result.push_back(nullptr);
  return result;
}

void restoreSignals() {
  struct sigaction action {};
  for (int signal = 1; signal < NSIG; ++signal) {
    action.sa_handler = sigismember(&ignoredAtStart, signal) == 1 ? SIG_IGN : SIG_DFL;
    sigaction(signal, &action, nullptr);
  }
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

// Moves the descriptors to numbers that do not overlap with the targets first, then to the targets.
bool placeDescriptors(const std::vector<std::pair<int, int>>& inherits) {
  int moved[8];
  size_t count = 0;
  for (auto [here, there] : inherits) {
    moved[count] = fcntl(here, F_DUPFD, 64);
    if (moved[count++] < 0) return false;
  }
  count = 0;
  for (auto [here, there] : inherits) {
    if (dup2(moved[count], there) < 0) return false;
    close(moved[count++]);
  }
  return true;
}

// Runs in the child: only async-signal-safe calls. Returns if a call failed, with errno set.
void become(const SpawnRequest& request, char* const* arguments, char* const* environment, pid_t parent) {
  if (request.ownGroup && setpgid(0, 0) < 0) return;
  if (request.ownSession && setsid() < 0) return;
  if (request.deathSignal != 0) {
    if (prctl(PR_SET_PDEATHSIG, request.deathSignal) < 0) return;
    if (getppid() != parent) raise(SIGKILL);
  }
  // If a container forbids this, the child starts anyway: a restore still compares every address and refuses a wrong one.
  if (request.fixedAddresses) personality(ADDR_NO_RANDOMIZE);
  if (!placeDescriptors(request.inherits)) return;
  restoreSignals();
  execvpe(request.executable.c_str(), arguments, environment);
}

}  // namespace

std::vector<std::string> ownEnvironment() {
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) all.emplace_back(*entry);
  return all;
}

void rememberIgnoredSignals() {
  sigemptyset(&ignoredAtStart);
  struct sigaction action;
  for (int signal = 1; signal < NSIG; ++signal) {
    if (sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN) sigaddset(&ignoredAtStart, signal);
  }
}

pid_t spawn(const SpawnRequest& request) {
  KJ_REQUIRE(request.inherits.size() <= 8, "too many file descriptors to pass on");
  std::vector<char*> arguments = pointers(request.arguments), environment = pointers(request.environment);
  int ends[2];
  KJ_SYSCALL(pipe2(ends, O_CLOEXEC));
  kj::AutoCloseFd readEnd(ends[0]), writeEnd(ends[1]);
  pid_t parent = getpid(), child;
  sigset_t all, before;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, &before);  // so that none of our handlers runs in the child
  child = fork();
  if (child == 0) {
    become(request, arguments.data(), environment.data(), parent);
    int error = errno;
    [[maybe_unused]] ssize_t written = write(writeEnd, &error, sizeof(error));
    _exit(127);
  }
  int forkError = errno;
  sigprocmask(SIG_SETMASK, &before, nullptr);
  if (child < 0) fail("cannot start a process: " + std::string(strerror(forkError)));
  writeEnd = nullptr;
  int error = 0;
  ssize_t got;
  do {
    got = read(readEnd, &error, sizeof(error));
  } while (got < 0 && errno == EINTR);
  if (got == sizeof(error)) {
    reapChild(child);
    fail("cannot execute " + request.executable + ": " + strerror(error));
  }
  return child;
}

int reapChild(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

std::string describeExit(int status) {
  if (WIFEXITED(status)) return "exited with code " + std::to_string(WEXITSTATUS(status));
  int signal = WTERMSIG(status);
  return "was killed by signal " + std::to_string(signal) + " (" + strsignal(signal) + ")";
}

}  // namespace vgpu
