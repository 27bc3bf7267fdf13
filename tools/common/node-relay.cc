#include "tools/common/node-relay.h"

#include <kj/debug.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "tools/common/installation.h"
#include "tools/common/spawn.h"
#include "vgpu/base/fail.h"

namespace vgpu {
namespace {

// Returns 0 at the end.
size_t readSome(int fd, char* to, size_t bytes) {
  ssize_t got;
  do got = read(fd, to, bytes);
  while (got < 0 && errno == EINTR);
  return got < 0 ? 0 : static_cast<size_t>(got);
}

}  // namespace

SpawnRequest relayRequest(std::vector<std::string> arguments) {
  SpawnRequest request;
  request.executable = libraryFile("vgpu-relay");
  request.arguments = std::move(arguments);
  request.arguments.insert(request.arguments.begin(), "vgpu-relay");
  request.ownGroup = true;
  return request;
}

NodeRelay::NodeRelay(const Endpoint& node, For what) {
  int ends[2];
  KJ_SYSCALL(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends));
  connection = kj::AutoCloseFd(ends[0]);
  kj::AutoCloseFd theirs(ends[1]);
  SpawnRequest request = relayRequest({"tool", "--node", node.text()});
  request.inherits = {{theirs.get(), relayDescriptor}};
  if (what == For::stream) request.arguments.emplace_back("--stream");
  process = spawn(request);  // it ends when our end of the socket pair is closed, so at the latest with this process
  theirs = nullptr;
  char status = 0;
  if (readSome(connection, &status, 1) == 1 && status == nodeReached) return;
  std::string why;
  char piece[1024];
  for (size_t got; status == nodeNotReached && (got = readSome(connection, piece, sizeof piece)) > 0;) why.append(piece, got);
  end();
  fail(why.empty() ? "the relay to " + node.text() + " ended at once; its messages are above" : why);
}

NodeRelay::~NodeRelay() { end(); }

void NodeRelay::end() {
  kill(process, SIGTERM);
  reapChild(process);
}

}  // namespace vgpu
