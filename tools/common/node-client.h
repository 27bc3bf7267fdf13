// A connection to a daemon, with the event loop that it needs. One at a time, on the main thread.
#pragma once

#include <capnp/rpc-twoparty.h>
#include <kj/async-io.h>

#include <memory>
#include <optional>

#include "tools/common/node-address.h"
#include "tools/common/node-relay.h"
#include "vgpu/control/control.capnp.h"

namespace vgpu {

class NodeClient {
 public:
  // Connects and exchanges versions. Throws kj::Exception: of type DISCONNECTED if no process listens, with a message that says how to
  // start a daemon; of another type if the peer is unsuitable, with the reason.
  explicit NodeClient(const NodeAddress& address);

  control::Node::Client& node() { return client; }
  capnp::List<control::Device>::Reader devices() const { return hello->getDevices(); }
  std::string runDirectory() const { return hello->getRunDirectory(); }
  // Whether the daemon accepts no more sessions.
  bool isEnding() const { return hello->getIsEnding(); }
  // Whether its devices are emulated: they run PTX, but no machine code.
  bool runsPtx() const;

  kj::AsyncIoContext& events() { return io; }

  // Waits for a reply. If the connection ends first, the error says so.
  template <typename T>
  T wait(kj::Promise<T> promise) {
    return promise.wait(io.waitScope);
  }

 private:
  kj::AutoCloseFd reach(const NodeAddress& address);

  std::unique_ptr<NodeRelay> relay;  // set if the node is elsewhere
  kj::AsyncIoContext io;
  kj::Own<kj::AsyncIoStream> stream;
  kj::Own<capnp::TwoPartyClient> rpc;
  control::Node::Client client = nullptr;
  std::optional<capnp::Response<control::Node::HelloResults>> hello;
};

}  // namespace vgpu
