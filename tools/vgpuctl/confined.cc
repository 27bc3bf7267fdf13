#include "tools/vgpuctl/confined.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "tools/common/reason.h"
#include "tools/common/spawn.h"
#include "vgpu/base/fail.h"

namespace vgpu::ctl {
namespace {

// Decoding the largest possible list (record-store.h) takes some 4 GiB and a few seconds.
constexpr rlim_t mostBytes = rlim_t{8} << 30;
constexpr unsigned mostSeconds = 60;

void limit(int resource, rlim_t most) {
  rlimit value{most, most};
  setrlimit(resource, &value);
}

void confine() {
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_CPU, mostSeconds);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // the sanitizers map terabytes
  limit(RLIMIT_AS, mostBytes);
#endif
  signal(SIGALRM, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  alarm(mostSeconds);
}

}  // namespace

int runConfined(const std::string& what, kj::FunctionParam<int()> action) {
  std::fflush(nullptr);
  pid_t child = fork();
  if (child < 0) fail(fmt::format("cannot start a process: {}", strerror(errno)));
  if (child == 0) {
    confine();
    int code = exitCodeOf("vgpuctl", [&] { return action(); });
    _exit(std::fflush(nullptr) == 0 ? code : 1);
  }
  const int status = reapChild(child);
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  bool late = WTERMSIG(status) == SIGALRM || WTERMSIG(status) == SIGXCPU;
  fail(late ? fmt::format("{} could not be read within {} s", what, mostSeconds)
            : fmt::format("{} is damaged: the process that was reading it {}", what, describeExit(status)));
}

}  // namespace vgpu::ctl
