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
  Acceptor(kj::AsyncIoContext& io, const std::string& path, kj::Function<void(kj::AutoCloseFd)> take)
      : io(io),
        path(path),
        listener(listenUnix(path)),
        observer(io.unixEventPort, listener, kj::UnixEventPort::FdObserver::OBSERVE_READ),
        take(kj::mv(take)) {}

  kj::Promise<void> run() {
    while (true) {
      int fd = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
      if (fd >= 0) {
        auto caught = kj::runCatchingExceptions([&] { admit(kj::AutoCloseFd(fd)); });
        KJ_IF_MAYBE (exception, caught) {
          warnLimited("connection", 0, fmt::format("a connection to {} is not served: {}", path, reasonOf(*exception)));
        }
      } else if (errno == EAGAIN) {
        return observer.whenBecomesReadable().then([this] { return run(); });
      } else if (errno != EINTR && errno != ECONNABORTED) {
        warnLimited("backlog", 0, fmt::format("a connection to {} has to wait: {}", path, strerror(errno)));
        return io.provider->getTimer().afterDelay(retryDelay).then([this] { return run(); });
      }
    }
  }

 private:
  void admit(kj::AutoCloseFd socket) {
    Peer peer = peerOf(socket);
    if (isTrusted(peer)) return take(kj::mv(socket));
    warnLimited("user", peer.uid, fmt::format("user {} may not connect to {}", peer.uid, path));
  }

  kj::AsyncIoContext& io;
  std::string path;
  kj::AutoCloseFd listener;
  kj::UnixEventPort::FdObserver observer;
  kj::Function<void(kj::AutoCloseFd)> take;
};

}  // namespace

kj::Promise<void> acceptAll(kj::AsyncIoContext& io, const std::string& path, kj::Function<void(kj::AutoCloseFd)> take) {
  auto acceptor = kj::heap<Acceptor>(io, path, kj::mv(take));
  auto promise = acceptor->run();
  return promise.attach(kj::mv(acceptor));
}

}  // namespace vgpu::daemon
