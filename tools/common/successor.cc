#include "tools/common/successor.h"

#include <kj/debug.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tools/common/installation.h"
#include "tools/common/node-relay.h"
#include "tools/common/spawn.h"

namespace vgpu {

kj::AutoCloseFd startSuccessorRelay(const std::string& node, const std::string& stateDirectory, std::span<const uint8_t> token) {
  int ends[2];
  KJ_SYSCALL(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends));
  kj::AutoCloseFd ours(ends[0]), theirs(ends[1]);
  SpawnRequest request;
  request.executable = libraryFile("vgpu-relay");
  request.arguments = {"vgpu-relay", "successor", "--node", node, "--state-dir", stateDirectory};
  for (char** entry = environ; *entry != nullptr; ++entry) request.environment.emplace_back(*entry);
  request.inherits = {{theirs.get(), relayDescriptor}};
  request.ownGroup = true;
  spawn(request);
  ssize_t put;
  KJ_SYSCALL(put = write(ours, token.data(), token.size()));  // on no command line: whoever knows it has the session
  KJ_REQUIRE(static_cast<size_t>(put) == token.size(), "a successor takes no token");
  return ours;
}

}  // namespace vgpu
