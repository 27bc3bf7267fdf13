#include "checkpoint/process/own-ids.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <kj/io.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>

#include "checkpoint/process/process-tree.h"
#include "vgpu/base/fail.h"

namespace vgpu::process {

namespace {

constexpr int firstId = 1;

[[noreturn]] void cannot(const char* doing) {
  fail(fmt::format("a copy needs a pid namespace of its own, but {} failed: {}. {}", doing, strerror(errno),
                   geteuid() == 0 ? "This container or kernel does not allow it" : "Run vgpuctl as root"));
}

// Sets the next process id to the start of a free range, so that CRIU and its helpers do not take ids of the saved processes.
void leaveFree(std::vector<int> ids) {
  constexpr int helpers = 64;
  std::ranges::sort(ids);
  int start = firstId + 1;
  for (int id : ids)
    if (id < start + helpers) start = std::max(start, id + 1);
  std::ofstream("/proc/sys/kernel/ns_last_pid") << start - 1;  // if this is refused, CRIU reports which id is taken
}

// `started`: a pipe to the creating process, which waits for a byte. If the creator has ended by then, this process ends too.
void becomeFirst(const snapshot::ProcessPart& part, int started) {
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) cannot("prctl(PR_SET_PDEATHSIG)");
  const char byte = 0;
  if (write(started, &byte, 1) != 1) _exit(1);
  close(started);
  if (setsid() < 0) cannot("setsid");  // for processes whose session leader was their shell
  if (unshare(CLONE_NEWNS) != 0) cannot("making a mount namespace");
  if (mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) cannot("making its mounts private");
  if (mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr) != 0) cannot("mounting /proc");
  leaveFree(part.threads);
}

}  // namespace

pid_t forkWithOwnIds(const snapshot::ProcessPart& part, const std::function<int()>& body) {
  if (std::ranges::find(part.threads, firstId) != part.threads.end())
    fail("one of the saved processes has process id 1, as the first process of a container: such processes cannot be copied");
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) cannot("a pipe");
  kj::AutoCloseFd input(ends[0]), output(ends[1]);
  if (unshare(CLONE_NEWPID) != 0) cannot("a pid namespace");
  std::fflush(nullptr);
  pid_t child = fork();
  if (child < 0) cannot("starting a process");
  if (child > 0) {
    output = nullptr;
    char byte;
    while (read(input, &byte, 1) < 0 && errno == EINTR) {
    }
    return child;
  }
  input = nullptr;
  becomeFirst(part, output.release());
  int code = body();
  std::fflush(nullptr);
  _exit(code);
}

std::map<int, pid_t> idsHere(pid_t first) {
  std::map<int, pid_t> ids;
  for (pid_t pid : treeOf(first)) {
    std::ifstream status(fmt::format("/proc/{}/status", pid));
    for (std::string line; std::getline(status, line);) {
      if (!line.starts_with("NSpid:")) continue;
      std::istringstream fields(line.substr(line.find(':') + 1));
      int there = 0;
      while (fields >> there) {  // the last id is that in the innermost namespace
      }
      ids[there] = pid;
    }
  }
  return ids;
}

}  // namespace vgpu::process
