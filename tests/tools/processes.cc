#include "tools/vgpud/processes.h"

#include <doctest/doctest.h>
#include <kj/exception.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "../refused-call.h"

namespace vgpu::daemon {
namespace {

// A child that does not end by itself. Only SIGKILL is safe to end it with: doctest's handlers of other signals allocate memory,
// and the signal may come while the child, still within fork(), holds the allocator's lock.
pid_t startChild() {
  pid_t child = fork();
  if (child == 0)
    for (;;) pause();
  return child;
}

}  // namespace

TEST_CASE("a child is told of and reaped when it ends, whether or not anyone waits for it") {
  kj::AsyncIoContext io = kj::setupAsyncIo();
  Processes processes(io.unixEventPort);
  pid_t watched = startChild(), ignored = startChild();
  auto child = processes.adopt(watched);
  processes.adopt(ignored);
  kill(ignored, SIGKILL);
  kill(watched, SIGKILL);
  CHECK(child.ended.wait(io.waitScope) == "was killed by signal 9 (Killed)");
  processes.allReaped().wait(io.waitScope);
  CHECK(waitpid(ignored, nullptr, WNOHANG) == -1);
  CHECK(errno == ECHILD);
}

TEST_CASE("a child that cannot be watched is ended and reaped, and that is an error") {
  test::withRefusedCall(SYS_pidfd_open, EMFILE, [] {
    kj::AsyncIoContext io = kj::setupAsyncIo();
    Processes processes(io.unixEventPort);
    pid_t child = startChild();
    CHECK(kj::runCatchingExceptions([&] { processes.adopt(child); }) != nullptr);
    CHECK(waitpid(child, nullptr, WNOHANG) == -1);
    CHECK(errno == ECHILD);
    kill(child, SIGKILL);
  });
}

}  // namespace vgpu::daemon
