#include "vgpu/control/endpoint.h"

#include <fcntl.h>
#include <kj/debug.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/vm_sockets.h>  // needs sys/socket.h

#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include "vgpu/base/fail.h"
#include "vgpu/control/loopback-peer.h"

namespace vgpu {
namespace {

struct Scheme {
  std::string_view text;
  Transport transport;
  uint64_t mostPort;
};
constexpr Scheme schemes[] = {{"tls:", Transport::tls, 65535},
                              {"tcp:", Transport::tcp, 65535},
                              {"vsock:", Transport::vsock, 0xffff'fffe},
                              {"ivshmem:", Transport::ivshmem, 0}};
constexpr std::string_view anyCid = "any";
constexpr int backlog = 128;
constexpr int connectMilliseconds = 5000;

struct Address {
  sockaddr_storage bytes{};
  socklen_t length = 0;

  sockaddr* get() { return static_cast<sockaddr*>(static_cast<void*>(&bytes)); }
};

std::optional<uint32_t> numberOf(std::string_view text, uint64_t most) {
  uint64_t number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size() || number > most) return std::nullopt;
  return static_cast<uint32_t>(number);
}

Address vsockAddress(const Endpoint& endpoint, bool passive) {
  sockaddr_vm vm{};
  vm.svm_family = AF_VSOCK;
  vm.svm_cid = endpoint.host == anyCid ? VMADDR_CID_ANY : *numberOf(endpoint.host, UINT32_MAX);
  vm.svm_port = *numberOf(endpoint.port, UINT32_MAX);
  if (passive && vm.svm_port == 0) vm.svm_port = VMADDR_PORT_ANY;
  Address address;
  std::memcpy(&address.bytes, &vm, sizeof vm);
  address.length = sizeof vm;
  return address;
}

[[noreturn]] void raiseUnreachable(const std::string& message) {
  kj::throwFatalException(
      kj::Exception(kj::Exception::Type::DISCONNECTED, __FILE__, __LINE__, kj::heapString(message.data(), message.size())));
}

// A name server that does not reply, or a system without memory or descriptors: a later attempt may succeed.
[[noreturn]] void failToResolve(const Endpoint& endpoint, int error) {
  const std::string reason = error == EAI_SYSTEM ? std::strerror(errno) : gai_strerror(error);
  const std::string message = "the address " + endpoint.text() + " cannot be resolved: " + reason;
  if (error == EAI_AGAIN || error == EAI_MEMORY || error == EAI_SYSTEM) raiseUnreachable(message);
  fail(message);
}

std::vector<Address> resolve(const Endpoint& endpoint, bool passive) {
  if (endpoint.transport == Transport::vsock) return {vsockAddress(endpoint, passive)};
  addrinfo wanted{}, *found = nullptr;
  wanted.ai_family = AF_UNSPEC;
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = AI_NUMERICSERV | (passive ? AI_PASSIVE : 0);
  int error = getaddrinfo(endpoint.host.c_str(), endpoint.port.c_str(), &wanted, &found);
  if (error != 0) failToResolve(endpoint, error);
  std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owned(found, freeaddrinfo);
  std::vector<Address> addresses;
  for (; found != nullptr; found = found->ai_next) {
    addresses.emplace_back();
    std::memcpy(&addresses.back().bytes, found->ai_addr, found->ai_addrlen);
    addresses.back().length = found->ai_addrlen;
  }
  return addresses;
}

kj::AutoCloseFd socketFor(Address& address) {
  int fd = socket(address.get()->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0 && errno == EAFNOSUPPORT) fail("this system does not support such sockets (vsock: or IPv6)");
  if (fd < 0) KJ_FAIL_SYSCALL("socket", errno);
  return kj::AutoCloseFd(fd);
}

// Sockets accepted from this one inherit the option.
void setNoDelay(int fd, const Endpoint& endpoint) {
  int on = 1;
  if (endpoint.transport != Transport::vsock) setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

// Returns 0 or an errno.
int connectWithin(int fd, Address& address) {
  if (connect(fd, address.get(), address.length) == 0) return 0;
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

// Why an unencrypted listener that does not authenticate must not listen at this address; empty if it is safe.
std::string dangerOf(const Endpoint& endpoint, Address& address) {
  if (endpoint.transport == Transport::tls) return "";
  if (endpoint.transport == Transport::vsock)
    return endpoint.text() +
           " can be reached by every user of the virtual machines, or of the host, and vsock: neither encrypts nor asks who connects: "
           "whoever reaches it runs programs as your user. Give --allow-plain if they are yours alone";
  if (isLoopback(*address.get())) return "";
  return endpoint.text() +
         " can be reached from other hosts, and tcp: neither encrypts nor asks who connects: whoever reaches it runs programs as "
         "your user. Listen on tls:" +
         endpoint.host + ":PORT, or give --allow-plain if the network is yours alone";
}

Endpoint endpointOf(Address& address, Transport transport) {
  if (transport == Transport::vsock) {
    sockaddr_vm vm;
    std::memcpy(&vm, &address.bytes, sizeof vm);
    return {transport, vm.svm_cid == VMADDR_CID_ANY ? std::string(anyCid) : std::to_string(vm.svm_cid),
            std::to_string(vm.svm_port)};
  }
  char host[NI_MAXHOST], port[NI_MAXSERV];
  int error = getnameinfo(address.get(), address.length, host, sizeof host, port, sizeof port, NI_NUMERICHOST | NI_NUMERICSERV);
  if (error != 0) fail(std::string("the address of a socket cannot be read: ") + gai_strerror(error));
  return {transport, host, port};
}

}  // namespace

std::string Endpoint::text() const {
  if (transport == Transport::ivshmem) return "ivshmem:" + host;
  bool isV6 = host.find(':') != std::string::npos;
  std::string text;
  for (const Scheme& scheme : schemes)
    if (scheme.transport == transport) text = scheme.text;
  return text + (isV6 ? "[" + host + "]" : host) + ":" + port;
}

std::optional<Endpoint> parseEndpoint(const std::string& text) {
  const Scheme* scheme = nullptr;
  for (const Scheme& one : schemes)
    if (text.starts_with(one.text)) scheme = &one;
  if (scheme == nullptr) return std::nullopt;
  std::string rest = text.substr(scheme->text.size());
  if (scheme->transport == Transport::ivshmem) return Endpoint{scheme->transport, rest, {}};
  if (rest.starts_with("//")) rest.erase(0, 2);
  size_t colon = rest.rfind(':');
  Endpoint endpoint{scheme->transport, {}, {}};
  if (colon != std::string::npos) endpoint = {scheme->transport, rest.substr(0, colon), rest.substr(colon + 1)};
  if (endpoint.host.starts_with('[') && endpoint.host.ends_with(']'))
    endpoint.host = endpoint.host.substr(1, endpoint.host.size() - 2);
  bool isHost = !endpoint.host.empty();
  if (scheme->transport == Transport::vsock) isHost = endpoint.host == anyCid || numberOf(endpoint.host, VMADDR_CID_ANY - 1);
  if (!isHost || !numberOf(endpoint.port, scheme->mostPort))
    fail("\"" + text + "\" is not the address of a node: give " + endpointForms);
  return endpoint;
}

kj::AutoCloseFd connectTo(const Endpoint& endpoint) {
  if (endpoint.transport == Transport::ivshmem)
    fail(endpoint.text() + " is memory that this machine shares with its host: only `vgpuctl run` can use it");
  int error = 0;
  for (Address& address : resolve(endpoint, false)) {
    kj::AutoCloseFd fd = socketFor(address);
    error = connectWithin(fd, address);
    if (error != 0) continue;
    setNoDelay(fd, endpoint);
    KJ_SYSCALL(fcntl(fd, F_SETFL, 0));
    return fd;
  }
  raiseUnreachable("nothing answers at " + endpoint.text() + ": " + std::strerror(error));
}

kj::AutoCloseFd listenOn(const Endpoint& endpoint, bool plainAllowed) {
  if (endpoint.transport == Transport::ivshmem)
    fail("--listen does not take ivshmem: name a virtual machine's memory with --guest NAME=FILE");
  Address address = resolve(endpoint, true).front();
  std::string danger = plainAllowed ? "" : dangerOf(endpoint, address);
  if (!danger.empty()) fail(danger);
  kj::AutoCloseFd fd = socketFor(address);
  int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  setNoDelay(fd, endpoint);
  if (bind(fd, address.get(), address.length) < 0) fail("cannot listen on " + endpoint.text() + ": " + std::strerror(errno));
  KJ_SYSCALL(listen(fd, backlog), endpoint.text().c_str());
  return fd;
}

Endpoint boundTo(int socket, Transport transport) {
  Address address;
  address.length = sizeof address.bytes;
  KJ_SYSCALL(getsockname(socket, address.get(), &address.length));
  return endpointOf(address, transport);
}

Endpoint peerAt(int socket, Transport transport) {
  Address address;
  address.length = sizeof address.bytes;
  KJ_SYSCALL(getpeername(socket, address.get(), &address.length));
  return endpointOf(address, transport);
}

}  // namespace vgpu
