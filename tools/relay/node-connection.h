// How the two relays of a session, and those that pass the control plane's calls on, connect with each other: what each kind of
// address asks of the other side before a byte of the greeting is sent, or read.
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
// Connects with a node and greets it. Blocking, for at most 10 s after it is connected. Throws kj::Exception: DISCONNECTED if
// another attempt may succeed, FAILED with what the node has refused.
ReachedNode reachNode(const Endpoint& node, const Greeting& greeting);

// `connection`: accepted at the node's address `listener`. Returns it if its other side may use the node; nothing of the greeting
// has been read. Blocking, until `deadline`. Throws kj::Exception, saying who was not admitted, and why.
std::unique_ptr<ByteStream> admitPeer(kj::AutoCloseFd connection, const Endpoint& listener, GreetingDeadline deadline);

}  // namespace vgpu::relay
