// The addresses at which a node is reached from elsewhere, and what its listener may be bound to.
//
//   tls:HOST:PORT     encrypted, and both sides show certificates (tools/keys/)
//   tcp:HOST:PORT     neither
//   vsock:CID:PORT    neither; between a virtual machine and its host. CID of a listener: a number, or any
//   ivshmem:DEVICE    no connection: memory that a virtual machine shares with its host (docs/virtual-machines.md). DEVICE: its
//                     PCI address, as 0000:00:05.0, or the path of that memory; empty if there is one such device
//
// An IPv6 address is in brackets; port 0, of a listener only: any that is free. tls://HOST:PORT is another spelling of
// tls:HOST:PORT, and so for the others.
#pragma once

#include <kj/io.h>

#include <optional>
#include <string>

namespace vgpu {

enum class Transport { tls, tcp, vsock, ivshmem };

struct Endpoint {
  Transport transport = Transport::tcp;
  std::string host, port;  // of ivshmem: the device, and nothing

  std::string text() const;
};

// How addresses look, for messages.
inline constexpr const char* endpointForms = "tls:HOST:PORT, tcp:HOST:PORT or vsock:CID:PORT";

// Nothing if `text` does not begin with a scheme of an endpoint. Throws kj::Exception, saying what an address looks like, if it
// does and is none.
std::optional<Endpoint> parseEndpoint(const std::string& text);

// A connected stream, without delay of small writes. Throws kj::Exception, of type DISCONNECTED if nothing answers there, or if
// the name cannot be resolved for now.
kj::AutoCloseFd connectTo(const Endpoint& endpoint);

// A listening socket, non-blocking. Where neither encryption nor certificates protect it, an address that is not this host's own
// loopback is refused unless `plainAllowed`. Throws kj::Exception.
kj::AutoCloseFd listenOn(const Endpoint& endpoint, bool plainAllowed);
// Where a socket listens, with the port that it got; where the other end of a connected one is.
Endpoint boundTo(int socket, Transport transport);
Endpoint peerAt(int socket, Transport transport);

// Whether the peer of a connected socket may use this node, as far as the system tells: over TCP on loopback, if its socket
// belongs to our user or root; otherwise the listener has been allowed to take everybody. If not, `problem` says why.
bool mayUseNode(int socket, std::string& problem);

}  // namespace vgpu
