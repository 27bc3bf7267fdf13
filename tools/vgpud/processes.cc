#include "tools/vgpud/processes.h"

#include <kj/debug.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "tools/common/reason.h"
#include "tools/common/spawn.h"

namespace vgpu::daemon {
namespace {

kj::AutoCloseFd openHandle(pid_t child) {
  long fd = syscall(SYS_pidfd_open, child, 0);  // sets close-on-exec
  if (fd < 0) KJ_FAIL_SYSCALL("pidfd_open (vgpu needs Linux 5.3)", errno, child);
  return kj::AutoCloseFd(static_cast<int>(fd));
}

// By pid, which cannot be reused before the child is reaped.
void endAtOnce(pid_t child) {
  kill(child, SIGKILL);
  reapChild(child);
}

}  // namespace

Processes::Child Processes::adopt(pid_t child) {
  KJ_ON_SCOPE_FAILURE(endAtOnce(child));
  auto handle = openHandle(child);
  return {kj::mv(handle), reap(child)};
}

kj::Promise<void> Processes::ended(kj::AutoCloseFd handle) {
  auto observer = kj::heap<kj::UnixEventPort::FdObserver>(port, handle, kj::UnixEventPort::FdObserver::OBSERVE_READ);
  auto promise = observer->whenBecomesReadable();
  return promise.attach(kj::mv(observer)).attach(kj::mv(handle));  // this order destroys the observer before its descriptor
}

kj::Promise<void> Processes::ended(pid_t pid) {
  if (pid <= 0) return kj::NEVER_DONE;
  long fd = syscall(SYS_pidfd_open, pid, 0);
  if (fd >= 0) return ended(kj::AutoCloseFd(static_cast<int>(fd)));
  if (errno == ESRCH) return kj::READY_NOW;
  return kj::NEVER_DONE;
}

kj::Promise<std::string> Processes::reap(pid_t pid) {
  auto fork = ended(openHandle(pid))
                  .then([pid] {
                    int status = 0;
                    pid_t reaped;
                    KJ_SYSCALL(reaped = waitpid(pid, &status, 0));
                    return describeExit(status);
                  })
                  .fork();
  auto result = fork.addBranch();
  tasks.add(fork.addBranch().ignoreResult());
  return result;
}

void Processes::taskFailed(kj::Exception&& exception) { spdlog::warn("waiting for a child process failed: {}", reasonOf(exception)); }

}  // namespace vgpu::daemon
