// Connections from elsewhere: each gets a process of its own, vgpu-relay, when it is its turn (greeting-queue.h). The relay greets it and
// acts as the program towards this daemon (docs/remote.md). So this process reads no byte that a stranger sends.
#pragma once

#include <kj/async-io.h>

#include <string>

#include "tools/vgpud/processes.h"
#include "vgpu/control/endpoint.h"

namespace vgpu::daemon {

class RemoteListener {
 public:
  // Listens at once. Throws kj::Exception if that is refused (endpoint.h), or if it needs keys that do not exist (tools/keys/).
  RemoteListener(const Endpoint& endpoint, bool plainAllowed);

  // The address, with the port that it got.
  std::string address() const { return where.text(); }
  // Serves as long as the promise lives. Call it once.
  kj::Promise<void> serve(kj::AsyncIoContext& io, Processes& processes, const std::string& runDirectory);

 private:
  kj::AutoCloseFd listener;
  Endpoint where;
};

}  // namespace vgpu::daemon
