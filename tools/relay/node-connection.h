// How relays connect to each other, those of a session and those that pass control plane calls: what each kind of address requires of the
// other side before the greeting is sent or read.
#pragma once

#include <kj/io.h>

#include <memory>

#include "vgpu/control/byte-stream.h"
#include "vgpu/control/endpoint.h"
#include "vgpu/control/greeting.h"

namespace vgpu::relay {

struct ReachedNode {
  std::unique_ptr<ByteStream> stream;
  GreetingAnswer answer;
};
// Connects to a node and greets it. Blocks for at most 10 s after the connection is made. Throws kj::Exception: DISCONNECTED if another
// attempt may succeed, FAILED if the node has refused, with its reason.
ReachedNode reachNode(const Endpoint& node, const Greeting& greeting);

// `connection`: accepted at the node's address `listener`. Returns it if its peer may use the node, before any byte of the greeting is
// read. Blocks until `deadline`. Throws kj::Exception, saying who was refused and why.
std::unique_ptr<ByteStream> admitPeer(kj::AutoCloseFd connection, const Endpoint& listener, GreetingDeadline deadline);

}  // namespace vgpu::relay
