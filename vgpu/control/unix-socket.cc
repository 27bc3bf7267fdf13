#include "vgpu/control/unix-socket.h"

#include <fcntl.h>
#include <kj/debug.h>
#include <kj/exception.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "vgpu/base/fail.h"

namespace vgpu {
namespace {

constexpr int backlog = 512;

[[noreturn]] void raise(kj::Exception::Type type, const std::string& message) {
  kj::throwFatalException(kj::Exception(type, __FILE__, __LINE__, kj::heapString(message.data(), message.size())));
}

kj::AutoCloseFd streamSocket(int flags) {
  int fd;
  KJ_SYSCALL(fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0));
  return kj::AutoCloseFd(fd);
}

struct Address {
  sockaddr_un value{};
  socklen_t length = 0;
  kj::AutoCloseFd directory;  // keeps /proc/self/fd/N in `value` valid

  const sockaddr* get() const { return static_cast<const sockaddr*>(static_cast<const void*>(&value)); }
};

void put(Address& address, const std::string& text) {
  address.value.sun_family = AF_UNIX;
  std::copy(text.begin(), text.end(), address.value.sun_path);
  address.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + text.size());
}

Address fileAddress(const std::string& path) {
  Address address;
  constexpr size_t room = sizeof(address.value.sun_path) - 1;
  if (path.size() <= room) {
    put(address, path);
    return address;
  }
  size_t slash = path.rfind('/');
  std::string directory = slash == std::string::npos ? "." : path.substr(0, std::max<size_t>(slash, 1));
  std::string file = slash == std::string::npos ? path : path.substr(slash + 1);
  int fd = open(directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0)
    fail("cannot open the directory of the socket " + path + ": " + strerror(errno));
  address.directory = kj::AutoCloseFd(fd);
  std::string reached = "/proc/self/fd/" + std::to_string(fd) + "/" + file;
  if (reached.size() > room) {
    fail("the socket's own name is too long (at most about 85 bytes): " + path);
  }
  put(address, reached);
  return address;
}

}  // namespace

kj::AutoCloseFd connectUnix(const std::string& path) {
  Address address = fileAddress(path);
  kj::AutoCloseFd fd = streamSocket(0);
  int result;
  do {
    result = connect(fd, address.get(), address.length);
  } while (result < 0 && errno == EINTR);
  if (result == 0 || errno == EISCONN) return fd;
  int error = errno;
  switch (error) {
    case ENOENT:
      raise(kj::Exception::Type::DISCONNECTED, "there is no socket " + path);
    case ECONNREFUSED:
      raise(kj::Exception::Type::DISCONNECTED, "nobody listens on " + path + ": the process that made it has ended");
    case EAGAIN:
      raise(kj::Exception::Type::OVERLOADED, "too many connections wait to be accepted on " + path);
    default:
      fail("cannot connect to " + path + ": " + strerror(error));
  }
}

kj::AutoCloseFd listenUnix(const std::string& path) {
  Address address = fileAddress(path);
  kj::AutoCloseFd fd = streamSocket(SOCK_NONBLOCK);
  if (bind(fd, address.get(), address.length) < 0) fail("cannot make the socket " + path + ": " + strerror(errno));
  // Nobody can connect before listen(), so the permissions are in force in time.
  KJ_SYSCALL(chmod(path.c_str(), 0600), path.c_str());
  KJ_SYSCALL(listen(fd, backlog), path.c_str());
  return fd;
}

Peer peerOf(int socket) {
  ucred credentials{};
  socklen_t length = sizeof(credentials);
  KJ_SYSCALL(getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &length));
  return {credentials.pid, credentials.uid};
}

bool isTrusted(const Peer& peer) { return peer.uid == geteuid() || peer.uid == 0; }

}  // namespace vgpu
