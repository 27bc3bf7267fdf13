#include "tools/vgpuctl/await-program.h"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "checkpoint/process/process-tree.h"
#include "tools/common/spawn.h"

namespace vgpu::ctl {

namespace {

// Passed on to the program if a process sent them. If the program is in our process group, the terminal sends its signals itself.
constexpr int forwarded[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};

int savedSignal() { return SIGRTMIN + 4; }

// Takes this blocked signal from the pending ones, if it has arrived. sigwaitinfo() would take the lowest-numbered of several first.
bool take(int signal) {
  sigset_t only;
  sigemptyset(&only);
  sigaddset(&only, signal);
  const timespec now{};
  return sigtimedwait(&only, nullptr, &now) == signal;
}

// Whether the program has ended. The first process of a pid namespace must also reap all orphans in it.
bool hasEnded(pid_t program, int& status) {
  const pid_t asked = getpid() == 1 ? -1 : program;
  for (pid_t ended; (ended = waitpid(asked, &status, WNOHANG)) > 0;)
    if (ended == program) return true;
  return false;
}

}  // namespace

ParentSignals::ParentSignals() {
  sigemptyset(&watched);
  sigaddset(&watched, SIGCHLD);
  sigaddset(&watched, savedSignal());
  for (int signal : forwarded) sigaddset(&watched, signal);
  sigprocmask(SIG_BLOCK, &watched, &before);
}

ParentSignals::~ParentSignals() { sigprocmask(SIG_SETMASK, &before, nullptr); }

int ParentSignals::await(pid_t program, const std::string& name) const {
  bool isSaved = false;
  while (true) {
    siginfo_t info;
    int signal = sigwaitinfo(&watched, &info), status;
    if (signal < 0) continue;
    if (signal == savedSignal()) {
      isSaved = true;
      prctl(PR_SET_CHILD_SUBREAPER, 1);  // its descendants are reaped before it, so that their ids are free afterwards
    } else if (signal != SIGCHLD && (info.si_code <= 0 || getpgid(program) != getpgrp())) {
      kill(program, signal);
    }
    if (signal != SIGCHLD || !hasEnded(program, status)) continue;
    if (WIFEXITED(status)) return WEXITSTATUS(status);
    isSaved |= take(savedSignal());
    while (isSaved && waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    if (!isSaved) fmt::print(stderr, "vgpuctl: {} {}\n", name, describeExit(status));
    return 128 + WTERMSIG(status);
  }
}

void tellParentSaved(pid_t program) {
  pid_t parent = process::factsOf(program).parent;
  if (parent > 0 && process::runsThisProgram(parent)) sigqueue(parent, savedSignal(), {});
}

}  // namespace vgpu::ctl
