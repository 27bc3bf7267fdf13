// Shared by endpoint.cc and the check of peers (endpoint.h, mayUseNode).
#pragma once

#include <sys/socket.h>

namespace vgpu {

// Whether an IPv4 or IPv6 address is this host's own loopback.
bool isLoopback(const sockaddr& address);

}  // namespace vgpu
