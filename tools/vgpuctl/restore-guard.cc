#include "tools/vgpuctl/restore-guard.h"

#include <fcntl.h>
#include <kj/debug.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>

#include "tools/common/spawn.h"

namespace vgpu::ctl {

RestoreGuard::RestoreGuard(const std::vector<pid_t>& processes) {
  int ends[2];
  KJ_SYSCALL(pipe2(ends, O_CLOEXEC));
  kj::AutoCloseFd input(ends[0]);
  output = kj::AutoCloseFd(ends[1]);
  KJ_SYSCALL(guard = fork());
  if (guard != 0) return;
  close(ends[1]);
  char done;
  ssize_t count;
  while ((count = read(ends[0], &done, 1)) < 0 && errno == EINTR) {
  }
  if (count == 0)
    for (pid_t process : processes) kill(process, SIGKILL);
  _exit(0);
}

RestoreGuard::~RestoreGuard() {
  const char done = 0;
  [[maybe_unused]] ssize_t written = write(output, &done, 1);
  reapChild(guard);
}

}  // namespace vgpu::ctl
