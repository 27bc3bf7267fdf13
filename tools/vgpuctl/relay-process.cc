#include "tools/vgpuctl/relay-process.h"

#include <fcntl.h>
#include <kj/debug.h>
#include <kj/io.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "tools/common/installation.h"
#include "tools/common/private-daemon.h"
#include "tools/common/spawn.h"
#include "vgpu/base/fail.h"

namespace vgpu::ctl {

RelayProcess::RelayProcess(const Endpoint& node) : directory(makePrivateDirectory()) {
  int ends[2];
  KJ_SYSCALL(pipe2(ends, O_CLOEXEC));
  kj::AutoCloseFd ours(ends[0]), theirs(ends[1]);
  SpawnRequest request;
  request.executable = libraryFile("vgpu-relay");
  request.arguments = {"vgpu-relay", "program", "--node", node.text(), "--run-dir", directory};
  request.inherits = {{theirs.get(), STDOUT_FILENO}};
  request.deathSignal = SIGTERM;
  request.ownGroup = true;
  process = spawn(request);
  theirs = nullptr;
  char first;
  ssize_t got;
  do got = read(ours, &first, 1);
  while (got < 0 && errno == EINTR);
  if (got == 1) return;
  waitpid(process, nullptr, 0);
  removePrivateDirectory(directory);
  fail("the relay to " + node.text() + " could not be started; what it said is above");
}

RelayProcess::~RelayProcess() {
  kill(process, SIGTERM);
  while (waitpid(process, nullptr, 0) < 0 && errno == EINTR) {
  }
  awaitPrivateRemoval(directory);
}

}  // namespace vgpu::ctl
