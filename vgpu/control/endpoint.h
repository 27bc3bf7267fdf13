// The addresses at which a node is reached from elsewhere, and the restrictions on what its listener binds to.
//
//   tls:HOST:PORT     encrypted, and both sides show certificates (tools/keys/)
//   tcp:HOST:PORT     neither encrypted nor with certificates
//   vsock:CID:PORT    the same; between a virtual machine and its host. CID of a listener: a number, or any
//   ivshmem:DEVICE    no connection, but memory that a virtual machine shares with its host (docs/virtual-machines.md). DEVICE: its PCI
//                     address, as 0000:00:05.0, or the path of that memory; empty if there is only one such device
//
// An IPv6 address is in brackets; port 0, only for a listener: any free port. tls://HOST:PORT is another spelling of
// tls:HOST:PORT, and so for the others.
#pragma once

#include <kj/io.h>

#include <optional>
#include <string>

namespace vgpu {

enum class Transport { tls, tcp, vsock, ivshmem };

struct Endpoint {
  Transport transport = Transport::tcp;
  std::string host, port;  // for ivshmem: the device, and empty

  std::string text() const;
};

// The forms of addresses, for messages.
inline constexpr const char* endpointForms = "tls:HOST:PORT, tcp:HOST:PORT or vsock:CID:PORT";

// Returns nothing if `text` does not begin with the scheme of an endpoint. Throws kj::Exception, saying what an address looks like, if it
// does but is not a valid address.
std::optional<Endpoint> parseEndpoint(const std::string& text);

// Connects a stream socket with TCP_NODELAY. Throws kj::Exception, of type DISCONNECTED if nothing answers at the address, or if the name
// cannot be resolved at present.
kj::AutoCloseFd connectTo(const Endpoint& endpoint);

// A listening socket, non-blocking. Without encryption and certificates (tcp, vsock), an address other than this host's own loopback is
// refused unless `plainAllowed`. Throws kj::Exception.
kj::AutoCloseFd listenOn(const Endpoint& endpoint, bool plainAllowed);
// The address on which a socket listens, with the port that it got; the address of a connected socket's peer.
Endpoint boundTo(int socket, Transport transport);
Endpoint peerAt(int socket, Transport transport);

// Whether the peer of a connected socket may use this node, as far as the system can tell: over TCP on loopback, if the peer's socket
// belongs to our user or root; otherwise always, because the listener was explicitly allowed to accept everybody. If false, `problem` says
// why.
bool mayUseNode(int socket, std::string& problem);

}  // namespace vgpu
