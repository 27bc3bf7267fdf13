// Connections from elsewhere: each gets a process of its own, vgpu-relay, which greets it and is the program to this daemon
// (docs/remote.md), when it is its turn (greeting-queue.h). So no byte of a stranger's is read here.
#pragma once

#include <kj/async-io.h>

#include <string>

#include "tools/vgpud/processes.h"
#include "vgpu/control/endpoint.h"

namespace vgpu::daemon {

class RemoteListener {
 public:
  // Listens at once. Throws kj::Exception if that is refused (endpoint.h), or needs keys that there are not (tools/keys/).
  RemoteListener(const Endpoint& endpoint, bool plainAllowed);

  // Where, with the port that it got.
  std::string address() const { return where.text(); }
  // Serves as long as the promise lives. Once.
  kj::Promise<void> serve(kj::AsyncIoContext& io, Processes& processes, const std::string& runDirectory);

 private:
  kj::AutoCloseFd listener;
  Endpoint where;
};

}  // namespace vgpu::daemon
