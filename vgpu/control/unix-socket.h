// Unix sockets of the control plane: stream, close-on-exec, with paths of any length and the peer's identity.
#pragma once

#include <kj/io.h>
#include <sys/types.h>

#include <string>

namespace vgpu {

// Connects to a socket file. A path that is too long for sockaddr_un is reached through its directory's descriptor. Throws kj::Exception,
// of type DISCONNECTED if no process listens there.
kj::AutoCloseFd connectUnix(const std::string& path);

// Listens on a new socket file that only its owner may connect to. Non-blocking. Throws kj::Exception.
kj::AutoCloseFd listenUnix(const std::string& path);

// The socket in a session's state directory on which a suspended program listens.
constexpr const char* reattachSocketName = "reattach.sock";

struct Peer {
  pid_t pid = 0;  // of the process that called connect() or listen(), 0 if it is in a pid namespace that we cannot see
  uid_t uid = 0;
};

// The process at the other end of a connected unix socket. Throws kj::Exception.
Peer peerOf(int socket);

// Whether the peer runs as our own user or as root.
bool isTrusted(const Peer& peer);

}  // namespace vgpu
