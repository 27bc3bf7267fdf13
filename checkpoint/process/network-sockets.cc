#include "checkpoint/process/network-sockets.h"

#include <fmt/format.h>

#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <string_view>
#include <vector>

namespace vgpu::process {

namespace {

// A row of /proc/PID/net/tcp and similar files; the kernel's proc_net_tcp.rst describes the columns.
struct NetworkSocket {
  bool isTcp = false;
  std::string state;   // TCP state, two hexadecimal digits
  std::string queues;  // "00000000:00000001"; for a listener, the second number counts connections that wait to be accepted
};

constexpr std::string_view closed = "07", listens = "0A";  // TCP_CLOSE and TCP_LISTEN

std::optional<NetworkSocket> findSocket(pid_t pid, const std::string& inode) {
  constexpr size_t state = 3, queues = 4, inodes = 9;
  for (std::string table : {"tcp", "tcp6", "udp", "udp6"}) {
    std::ifstream file(fmt::format("/proc/{}/net/{}", pid, table));
    for (std::string line; std::getline(file, line);) {
      std::istringstream words(line);
      const std::vector<std::string> fields{std::istream_iterator<std::string>(words), {}};
      if (fields.size() > inodes && fields[inodes] == inode)
        return NetworkSocket{table.starts_with("tcp"), fields[state], fields[queues]};
    }
  }
  return std::nullopt;
}

bool hasCallers(const NetworkSocket& socket) {
  return socket.queues.find_first_not_of('0', socket.queues.find(':') + 1) != std::string::npos;
}

}  // namespace

std::string socketObstacle(pid_t pid, const std::string& inode, bool isKnownToCriu) {
  const auto socket = findSocket(pid, inode);
  if (!socket) return "";
  if (socket->isTcp && socket->state != closed && socket->state != listens) return "is a TCP connection";
  if (socket->isTcp && socket->state == listens && hasCallers(*socket))
    return "listens, and has TCP connections that were not accepted yet";
  if (!isKnownToCriu)
    return fmt::format(
        "is a {} socket, which CRIU before 4.2.1 cannot save on Linux 6.16 and newer: `tools/setup` builds a newer CRIU",
        socket->isTcp ? "TCP" : "UDP");
  return "";
}

}  // namespace vgpu::process
