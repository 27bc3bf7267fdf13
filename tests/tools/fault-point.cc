// A fault point stops the thread that reaches it before its process continues.
#include "vgpu/base/fault-point.h"

#include <doctest/doctest.h>
#include <kj/debug.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <thread>

namespace vgpu {
namespace {

constexpr const char* pipeVariable = "VGPU_TEST_PIPE";

// Runs in a separate process, because a process reads its fault point when it starts.
TEST_CASE("a thread reaches a fault point and goes on" * doctest::skip()) {
  std::thread([] {
    faultPoint("suspend.packs-synced");
    [[maybe_unused]] ssize_t put = write(std::atoi(std::getenv(pipeVariable)), "", 1);
  }).join();
}

pid_t startReaching(int end) {
  pid_t child;
  KJ_SYSCALL(child = fork());
  if (child != 0) return child;
  setenv("VGPU_FAULT_POINT", "suspend.packs-synced:stop", 1);
  setenv(pipeVariable, std::to_string(end).c_str(), 1);
  execl("/proc/self/exe", "test-tools", "--no-skip", "--test-case=a thread reaches a fault point and goes on", nullptr);
  _exit(127);
}

TEST_CASE("a thread that is stopped at a fault point has not continued") {
  for (int i = 0; i < 100; ++i) {
    int ends[2];
    KJ_SYSCALL(pipe(ends));
    kj::AutoCloseFd from(ends[0]), to(ends[1]);
    const pid_t child = startReaching(to);
    to = nullptr;
    int status = 0;
    REQUIRE(waitpid(child, &status, WUNTRACED) == child);
    REQUIRE(WIFSTOPPED(status));
    kill(child, SIGKILL);
    REQUIRE(waitpid(child, &status, 0) == child);
    char byte;
    REQUIRE(read(from, &byte, 1) == 0);
  }
}

}  // namespace
}  // namespace vgpu
