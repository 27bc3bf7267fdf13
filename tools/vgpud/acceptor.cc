#include "tools/vgpud/acceptor.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "tools/common/reason.h"
#include "tools/vgpud/log.h"
#include "vgpu/control/unix-socket.h"

namespace vgpu::daemon {
namespace {

constexpr auto retryDelay = 50 * kj::MILLISECONDS;

class Acceptor {
 public:
  Acceptor(kj::AsyncIoContext& io, kj::AutoCloseFd socket, const std::string& name, kj::Function<void(kj::AutoCloseFd)> take)
      : io(io),
        name(name),
        listener(kj::mv(socket)),
        observer(io.unixEventPort, listener, kj::UnixEventPort::FdObserver::OBSERVE_READ),
        take(kj::mv(take)) {}

  kj::Promise<void> run() {
    while (true) {
      int fd = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
      if (fd >= 0) {
        auto caught = kj::runCatchingExceptions([&] { take(kj::AutoCloseFd(fd)); });
        KJ_IF_MAYBE (exception, caught) {
          warnLimited("connection", 0, fmt::format("a connection to {} is not served: {}", name, reasonOf(*exception)));
        }
      } else if (errno == EAGAIN) {
        return observer.whenBecomesReadable().then([this] { return run(); });
      } else if (errno != EINTR && errno != ECONNABORTED) {
        warnLimited("backlog", 0, fmt::format("a connection to {} must wait: {}", name, strerror(errno)));
        return io.provider->getTimer().afterDelay(retryDelay).then([this] { return run(); });
      }
    }
  }

 private:
  kj::AsyncIoContext& io;
  std::string name;
  kj::AutoCloseFd listener;
  kj::UnixEventPort::FdObserver observer;
  kj::Function<void(kj::AutoCloseFd)> take;
};

}  // namespace

kj::Promise<void> acceptFrom(kj::AsyncIoContext& io, kj::AutoCloseFd listener, const std::string& name,
                             kj::Function<void(kj::AutoCloseFd)> take) {
  auto acceptor = kj::heap<Acceptor>(io, kj::mv(listener), name, kj::mv(take));
  auto promise = acceptor->run();
  return promise.attach(kj::mv(acceptor));
}

kj::Promise<void> acceptAll(kj::AsyncIoContext& io, const std::string& path, kj::Function<void(kj::AutoCloseFd)> take) {
  return acceptFrom(io, listenUnix(path), path, [path, take = kj::mv(take)](kj::AutoCloseFd socket) mutable {
    Peer peer = peerOf(socket);
    if (isTrusted(peer)) return take(kj::mv(socket));
    warnLimited("user", peer.uid, fmt::format("user {} may not connect to {}", peer.uid, path));
  });
}

}  // namespace vgpu::daemon
