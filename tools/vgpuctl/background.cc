#include "tools/vgpuctl/background.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "tools/common/reason.h"
#include "tools/common/spawn.h"
#include "vgpu/base/fail.h"

namespace vgpu::ctl {

void closeStandardStreams() {
  int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int stream = STDIN_FILENO; stream <= STDERR_FILENO; ++stream) dup2(nothing, stream);
  close(nothing);
}

BackgroundWork::BackgroundWork(const std::function<int(const Detach&)>& body) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) fail(fmt::format("cannot make a pipe: {}", strerror(errno)));
  input = kj::AutoCloseFd(ends[0]);
  kj::AutoCloseFd output(ends[1]);
  std::fflush(nullptr);
  child = fork();
  if (child < 0) fail(fmt::format("cannot start a process: {}", strerror(errno)));
  if (child > 0) return;
  input = nullptr;
  auto detach = [&] {
    std::fflush(nullptr);
    closeStandardStreams();
    char done = 0;
    [[maybe_unused]] ssize_t written = write(output, &done, 1);
    output = nullptr;
  };
  int code = exitCodeOf("vgpuctl", [&] { return body(detach); });
  std::fflush(nullptr);
  _exit(code);
}

int BackgroundWork::await() {
  char done;
  if (read(input, &done, 1) == 1) return 0;
  const int status = reapChild(child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace vgpu::ctl
