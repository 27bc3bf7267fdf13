// The connections of a migration to the node that takes the session.
#pragma once

#include <capnp/rpc-twoparty.h>
#include <kj/async-io.h>

#include <memory>
#include <optional>
#include <string>

#include "tools/common/node-relay.h"
#include "vgpu/control/endpoint.h"

namespace vgpu::daemon {

// A connection to the node, and the process that relays its bytes if the node is elsewhere.
struct Reached {
  std::unique_ptr<NodeRelay> relay;
  kj::AutoCloseFd socket;
};

// These connect by the endpoint `elsewhere` if the node may be on another host; otherwise by its path on this host: its streams' socket, or
// its run directory. Both block; they throw kj::Exception.
Reached connectStream(const std::optional<Endpoint>& elsewhere, const std::string& path, const std::string& token);
Reached connectNode(const std::optional<Endpoint>& elsewhere, const std::string& target);

// The daemon at the target.
class TargetNode {
 public:
  TargetNode(kj::AsyncIoContext& io, Reached reached)
      : relay(std::move(reached.relay)),
        stream(io.lowLevelProvider->wrapSocketFd(kj::mv(reached.socket))),
        rpc(*stream),
        client(rpc.bootstrap().castAs<control::Node>()) {}

  control::Node::Client& node() { return client; }

 private:
  std::unique_ptr<NodeRelay> relay;
  kj::Own<kj::AsyncIoStream> stream;
  capnp::TwoPartyClient rpc;
  control::Node::Client client;
};

}  // namespace vgpu::daemon
