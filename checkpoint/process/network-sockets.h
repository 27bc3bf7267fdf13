// Which TCP and UDP sockets of a process cannot be saved (docs/processes.md). A connection's other end does not wait; a listening socket is
// restored at the same address.
#pragma once

#include <sys/types.h>

#include <string>

namespace vgpu::process {

// Why the socket with this inode, in the process's network namespace, cannot be saved, as the end of a sentence; empty if it can.
// `isKnownToCriu`: Criu::savesNetworkSockets().
std::string socketObstacle(pid_t pid, const std::string& inode, bool isKnownToCriu);

}  // namespace vgpu::process
