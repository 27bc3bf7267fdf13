// The addresses at which a node is reached from elsewhere, and what its listener may be bound to.
//
//   tcp:HOST:PORT       an IPv6 address in brackets; port 0, of a listener only: any that is free
#pragma once

#include <kj/io.h>

#include <optional>
#include <string>

namespace vgpu {

struct Endpoint {
  std::string host, port;

  std::string text() const;
};

// Nothing if `text` does not begin with a scheme of an endpoint. Throws kj::Exception, saying what an address looks like, if it
// does and is none.
std::optional<Endpoint> parseEndpoint(const std::string& text);

// A connected stream, without delay of small writes. Throws kj::Exception, of type DISCONNECTED if nothing answers there.
kj::AutoCloseFd connectTo(const Endpoint& endpoint);

// A listening socket, non-blocking. An address that is not this host's own loopback is refused unless `plainAllowed`: what goes
// over the connection is neither encrypted nor authenticated. Throws kj::Exception.
kj::AutoCloseFd listenOn(const Endpoint& endpoint, bool plainAllowed);
// Where a socket listens, with the port that it got.
Endpoint boundTo(int socket);

// Whether the peer of a connected socket may use this node: over loopback, if its socket belongs to our user or root; over
// another interface, which the listener has allowed, always. If not, `problem` says why.
bool mayUseNode(int socket, std::string& problem);

}  // namespace vgpu
