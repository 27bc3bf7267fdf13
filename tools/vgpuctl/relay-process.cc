#include "tools/vgpuctl/relay-process.h"

#include <fcntl.h>
#include <kj/debug.h>
#include <kj/io.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <sstream>

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
  if (readLine(ours)) return;
  reapChild(process);
  removePrivateDirectory(directory);
  fail("the relay to " + node.text() + " could not be started; its messages are above");
}

// Reads "vgpu-relay: ready", in a virtual machine followed by what its host has.
bool RelayProcess::readLine(int output) {
  std::string line;
  char next = 0;
  while (next != '\n') {
    const ssize_t got = read(output, &next, 1);
    if (got == 0 || (got < 0 && errno != EINTR)) return false;
    if (got == 1) line += next;
  }
  std::istringstream words(line);
  std::string word, ready;
  words >> word >> ready >> gpuCount >> word;
  isPtx = word == "ptx";
  return true;
}

RelayProcess::~RelayProcess() {
  kill(process, SIGTERM);
  reapChild(process);
  awaitPrivateRemoval(directory);
}

}  // namespace vgpu::ctl
