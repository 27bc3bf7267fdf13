#include "tools/common/successor.h"

#include <kj/debug.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tools/common/node-relay.h"

namespace vgpu {

SuccessorRelay startSuccessorRelay(const std::string& node, const std::string& stateDirectory, std::string_view token) {
  int ends[2];
  KJ_SYSCALL(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends));
  kj::AutoCloseFd ours(ends[0]), theirs(ends[1]);
  SpawnRequest request = relayRequest({"successor", "--node", node, "--state-dir", stateDirectory});
  request.inherits = {{theirs.get(), relayDescriptor}};
  SuccessorRelay relay{kj::mv(ours), spawn(request)};
  ssize_t put;
  KJ_SYSCALL(put = write(relay.connection, token.data(), token.size()));  // not on a command line: the token gives access to the session
  KJ_REQUIRE(static_cast<size_t>(put) == token.size(), "a successor takes no token");
  return relay;
}

}  // namespace vgpu
