#include "vgpu/control/endpoint.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <kj/debug.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <sstream>
#include <string_view>

#include "vgpu/base/fail.h"

namespace vgpu {
namespace {

constexpr std::string_view scheme = "tcp:";
constexpr int backlog = 128;
constexpr int connectMilliseconds = 5000;

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

Addresses resolve(const Endpoint& endpoint, bool passive) {
  addrinfo wanted{}, *found = nullptr;
  wanted.ai_family = AF_UNSPEC;
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = AI_NUMERICSERV | (passive ? AI_PASSIVE : 0);
  int error = getaddrinfo(endpoint.host.c_str(), endpoint.port.c_str(), &wanted, &found);
  if (error != 0) fail("the address " + endpoint.text() + " cannot be resolved: " + gai_strerror(error));
  return {found, freeaddrinfo};
}

kj::AutoCloseFd socketFor(const addrinfo& address, int flags) {
  int fd = socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);
  if (fd < 0) KJ_FAIL_SYSCALL("socket", errno);
  return kj::AutoCloseFd(fd);
}

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

// An address as /proc/net/tcp has it: words of the address as numbers of this machine, a colon, the port, all in hexadecimal.
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

void setNoDelay(int fd) {
  int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

// 0, or why there is no connection.
int connectWithin(int fd, const addrinfo& address) {
  if (connect(fd, address.ai_addr, address.ai_addrlen) == 0) return 0;
  if (errno != EINPROGRESS && errno != EINTR) return errno;
  pollfd polled{fd, POLLOUT, 0};
  int ready;
  do ready = poll(&polled, 1, connectMilliseconds);
  while (ready < 0 && errno == EINTR);
  if (ready <= 0) return ETIMEDOUT;
  int error = 0;
  socklen_t length = sizeof error;
  getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length);
  return error;
}

sockaddr* any(sockaddr_storage& address) { return static_cast<sockaddr*>(static_cast<void*>(&address)); }

}  // namespace

std::string Endpoint::text() const {
  bool isV6 = host.find(':') != std::string::npos;
  return std::string(scheme) + (isV6 ? "[" + host + "]" : host) + ":" + port;
}

std::optional<Endpoint> parseEndpoint(const std::string& text) {
  if (!text.starts_with(scheme)) return std::nullopt;
  std::string rest = text.substr(scheme.size());
  size_t colon = rest.rfind(':');
  Endpoint endpoint;
  if (colon != std::string::npos) endpoint = {rest.substr(0, colon), rest.substr(colon + 1)};
  if (endpoint.host.starts_with('[') && endpoint.host.ends_with(']'))
    endpoint.host = endpoint.host.substr(1, endpoint.host.size() - 2);
  bool isNumber = !endpoint.port.empty() && endpoint.port.find_first_not_of("0123456789") == std::string::npos;
  if (endpoint.host.empty() || !isNumber || endpoint.port.size() > 5 || std::stoul(endpoint.port) > 65535)
    fail("\"" + text + "\" is no address of a node: give tcp:HOST:PORT");
  return endpoint;
}

kj::AutoCloseFd connectTo(const Endpoint& endpoint) {
  Addresses addresses = resolve(endpoint, false);
  int error = 0;
  for (addrinfo* address = addresses.get(); address != nullptr; address = address->ai_next) {
    kj::AutoCloseFd fd = socketFor(*address, SOCK_NONBLOCK);
    error = connectWithin(fd, *address);
    if (error != 0) continue;
    setNoDelay(fd);
    KJ_SYSCALL(fcntl(fd, F_SETFL, 0));
    return fd;
  }
  std::string message = "nothing answers at " + endpoint.text() + ": " + std::strerror(error);
  kj::throwFatalException(
      kj::Exception(kj::Exception::Type::DISCONNECTED, __FILE__, __LINE__, kj::heapString(message.data(), message.size())));
}

kj::AutoCloseFd listenOn(const Endpoint& endpoint, bool plainAllowed) {
  Addresses addresses = resolve(endpoint, true);
  if (!isLoopback(*addresses->ai_addr) && !plainAllowed)
    fail(endpoint.text() +
         " can be reached from other hosts, and tcp: neither encrypts nor asks who connects: whoever reaches it runs "
         "programs as your user. Listen on tcp:127.0.0.1:PORT, or say --allow-plain if the network is yours alone");
  kj::AutoCloseFd fd = socketFor(*addresses, SOCK_NONBLOCK);
  int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(fd, addresses->ai_addr, addresses->ai_addrlen) < 0)
    fail("cannot listen on " + endpoint.text() + ": " + std::strerror(errno));
  KJ_SYSCALL(listen(fd, backlog), endpoint.text().c_str());
  return fd;
}

Endpoint boundTo(int socket) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  KJ_SYSCALL(getsockname(socket, any(address), &length));
  char host[NI_MAXHOST], port[NI_MAXSERV];
  int error = getnameinfo(any(address), length, host, sizeof host, port, sizeof port, NI_NUMERICHOST | NI_NUMERICSERV);
  if (error != 0) fail(std::string("the address of a socket cannot be told: ") + gai_strerror(error));
  return {host, port};
}

bool mayUseNode(int socket, std::string& problem) {
  setNoDelay(socket);
  sockaddr_storage ours{}, theirs{};
  socklen_t ourLength = sizeof ours, theirLength = sizeof theirs;
  if (getsockname(socket, any(ours), &ourLength) < 0 || getpeername(socket, any(theirs), &theirLength) < 0) {
    problem = "it has gone";
    return false;
  }
  if (!isLoopback(*any(theirs))) return true;
  auto owner = ownerOf(theirs, ours);
  if (owner && (*owner == geteuid() || *owner == 0)) return true;
  problem = owner ? "it is of user " + std::to_string(*owner) : "the system does not say whose it is";
  return false;
}

}  // namespace vgpu
