// What endpoint.cc and the check of peers (endpoint.h, mayUseNode) both ask of an address.
#pragma once

#include <sys/socket.h>

namespace vgpu {

// Whether an address of IPv4 or IPv6 is this host's own.
bool isLoopback(const sockaddr& address);

}  // namespace vgpu
