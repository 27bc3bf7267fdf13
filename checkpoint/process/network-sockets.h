// What of a process's sockets of TCP and UDP cannot be saved (docs/processes.md). A connection has an end elsewhere, which does
// not wait; a socket that listens is restored at the same address.
#pragma once

#include <sys/types.h>

#include <string>

namespace vgpu::process {

// What keeps the socket of this inode, one of the process's network, from being saved, as the end of a sentence; empty if nothing
// does. `isKnownToCriu`: Criu::savesNetworkSockets().
std::string socketObstacle(pid_t pid, const std::string& inode, bool isKnownToCriu);

}  // namespace vgpu::process
