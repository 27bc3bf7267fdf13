// Finds the owner of the peer's socket of a loopback connection.
#include "vgpu/control/loopback-peer.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>

#include "vgpu/control/endpoint.h"

namespace vgpu {

bool isLoopback(const sockaddr& address) {
  if (address.sa_family == AF_INET) {
    sockaddr_in v4;
    std::memcpy(&v4, &address, sizeof v4);
    return ntohl(v4.sin_addr.s_addr) >> 24 == 127;
  }
  sockaddr_in6 v6;
  std::memcpy(&v6, &address, sizeof v6);
  if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) return v6.sin6_addr.s6_addr[12] == 127;
  return IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr);
}

namespace {

// An address in the format of /proc/net/tcp: the address's words as native integers, a colon, the port, all in hexadecimal.
std::string procText(const sockaddr_storage& address) {
  char text[64];
  if (address.ss_family == AF_INET) {
    sockaddr_in v4;
    std::memcpy(&v4, &address, sizeof v4);
    snprintf(text, sizeof text, "%08X:%04X", v4.sin_addr.s_addr, ntohs(v4.sin_port));
  } else {
    sockaddr_in6 v6;
    std::memcpy(&v6, &address, sizeof v6);
    uint32_t words[4];
    std::memcpy(words, &v6.sin6_addr, sizeof words);
    snprintf(text, sizeof text, "%08X%08X%08X%08X:%04X", words[0], words[1], words[2], words[3], ntohs(v6.sin6_port));
  }
  return text;
}

// The user whose socket has that local and remote address, from the kernel's table.
std::optional<uid_t> ownerOf(const sockaddr_storage& local, const sockaddr_storage& remote) {
  std::ifstream table(local.ss_family == AF_INET ? "/proc/net/tcp" : "/proc/net/tcp6");
  const std::string wantedLocal = procText(local), wantedRemote = procText(remote);
  std::string line;
  while (std::getline(table, line)) {
    std::istringstream fields(line);
    std::string number, from, to, state, queues, timer, retransmits, user;
    fields >> number >> from >> to >> state >> queues >> timer >> retransmits >> user;
    if (from == wantedLocal && to == wantedRemote) return static_cast<uid_t>(std::stoul(user));
  }
  return std::nullopt;
}

sockaddr* any(sockaddr_storage& address) { return static_cast<sockaddr*>(static_cast<void*>(&address)); }

}  // namespace

bool mayUseNode(int socket, std::string& problem) {
  sockaddr_storage ours{}, theirs{};
  socklen_t ourLength = sizeof ours, theirLength = sizeof theirs;
  if (getsockname(socket, any(ours), &ourLength) < 0 || getpeername(socket, any(theirs), &theirLength) < 0) {
    problem = "it has closed the connection";
    return false;
  }
  if (theirs.ss_family == AF_VSOCK || !isLoopback(*any(theirs))) return true;
  auto owner = ownerOf(theirs, ours);
  if (owner && (*owner == geteuid() || *owner == 0)) return true;
  problem = owner ? "it belongs to user " + std::to_string(*owner) : "the system does not report the user of its process";
  return false;
}

}  // namespace vgpu
