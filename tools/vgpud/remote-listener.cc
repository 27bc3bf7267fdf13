#include "tools/vgpud/remote-listener.h"

#include <fmt/format.h>
#include <unistd.h>

#include <memory>

#include "tools/common/installation.h"
#include "tools/common/spawn.h"
#include "tools/vgpud/acceptor.h"
#include "tools/vgpud/log.h"

namespace vgpu::daemon {
namespace {

constexpr int relayConnection = 3;  // where vgpu-relay expects it

pid_t startRelay(int connection, const std::string& runDirectory) {
  SpawnRequest request;
  request.executable = libraryFile("vgpu-relay");
  request.arguments = {"vgpu-relay", "node", "--run-dir", runDirectory};
  for (char** entry = environ; *entry != nullptr; ++entry) request.environment.emplace_back(*entry);
  request.inherits = {{connection, relayConnection}};
  request.ownGroup = true;
  return spawn(request);
}

}  // namespace

RemoteListener::RemoteListener(const Endpoint& endpoint, bool plainAllowed)
    : listener(listenOn(endpoint, plainAllowed)), where(boundTo(listener)) {}

kj::Promise<void> RemoteListener::serve(kj::AsyncIoContext& io, Processes& processes, const std::string& runDirectory) {
  struct Greetings final : kj::TaskSet::ErrorHandler {
    void taskFailed(kj::Exception&&) override {}
    unsigned count = 0;
    kj::TaskSet ended{*this};
  };
  auto greetings = kj::heap<Greetings>();
  auto take = [&processes, runDirectory, name = address(), &greetings = *greetings](kj::AutoCloseFd connection) {
    if (greetings.count == mostGreeting)
      return warnLimited("greeting", 0,
                         fmt::format("connections to {} are closed: {} others have not said who they are", name, mostGreeting));
    auto relay = processes.adopt(startRelay(connection, runDirectory));
    ++greetings.count;
    greetings.ended.add(relay.ended.then([&greetings](std::string) { --greetings.count; }).attach(kj::mv(relay.handle)));
  };
  auto served = acceptFrom(io, kj::mv(listener), address(), kj::mv(take));
  return served.attach(kj::mv(greetings));
}

}  // namespace vgpu::daemon
