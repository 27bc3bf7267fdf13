// The parent of a program that is saved with its process.
#include "tools/vgpuctl/await-program.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace vgpu::ctl;

TEST_CASE("a parent learns that its program was saved and has ended, in whatever order the signals arrive, and keeps running") {
  pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  {
    ParentSignals signals;
    tellParentSaved(child);
    kill(child, SIGKILL);
    siginfo_t ended;
    REQUIRE(waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT) == 0);  // SIGCHLD has arrived too
    CHECK(signals.await(child, "program") == 128 + SIGKILL);
  }
  sigset_t pending;
  REQUIRE(sigpending(&pending) == 0);
  CHECK(sigisemptyset(&pending) == 1);
}
