#include "tools/vgpud/remote-listener.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "tools/common/node-relay.h"
#include "tools/common/spawn.h"
#include "tools/vgpud/acceptor.h"
#include "tools/vgpud/greeting-queue.h"
#include "vgpu/base/fail.h"

namespace vgpu::daemon {
namespace {

pid_t startRelay(int connection, const std::string& listener, const std::string& runDirectory, bool isQuiet) {
  SpawnRequest request = relayRequest({"node", "--listener", listener, "--run-dir", runDirectory});
  request.inherits = {{connection, relayDescriptor}};
  if (isQuiet) request.arguments.emplace_back("--quiet");
  return spawn(request);
}

// Checks the keys before anybody connects, who would be refused because of them.
void requireKeys(const Endpoint& endpoint) {
  pid_t checking = spawn(relayRequest({"keys", "check"}));
  const int status = reapChild(checking);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    fail("cannot listen on " + endpoint.text() + ", which needs keys; the message above says what is wrong with them");
}

}  // namespace

RemoteListener::RemoteListener(const Endpoint& endpoint, bool plainAllowed) {
  if (endpoint.transport == Transport::tls) requireKeys(endpoint);
  listener = listenOn(endpoint, plainAllowed);
  where = boundTo(listener, endpoint.transport);
}

kj::Promise<void> RemoteListener::serve(kj::AsyncIoContext& io, Processes& processes, const std::string& runDirectory) {
  auto start = [runDirectory, name = address()](int connection, bool isQuiet) {
    return startRelay(connection, name, runDirectory, isQuiet);
  };
  auto queue = kj::heap<GreetingQueue>(io.provider->getTimer(), processes, address(), kj::mv(start));
  auto take = [&queue = *queue](kj::AutoCloseFd connection) { queue.add(kj::mv(connection)); };
  auto served = acceptFrom(io, kj::mv(listener), address(), kj::mv(take));
  return served.attach(kj::mv(queue));
}

}  // namespace vgpu::daemon
