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

// A child that does not end by itself. It can only be ended with SIGKILL: doctest's handlers of other signals allocate memory, and the
// signal may arrive while the child, still in fork(), holds the allocator's lock.
pid_t startChild() {
  pid_t child = fork();
  if (child == 0)
    for (;;) pause();
  return child;
}

}  // namespace

TEST_CASE("the end of a child is reported and the child reaped, whether or not the end is awaited") {
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

TEST_CASE("a child that cannot be watched is ended and reaped, and this is an error") {
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
