#include "tools/relay/splice.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <vector>

namespace vgpu::relay {
namespace {

constexpr size_t bufferBytes = 64 * 1024;

// One direction: what has been read and not written yet.
struct Direction {
  int from, to;
  std::vector<char> bytes = std::vector<char>(bufferBytes);
  size_t begin = 0, end = 0;
  bool isOver = false;

  bool isEmpty() const { return begin == end; }

  // False if the connection has failed.
  bool read() {
    ssize_t got = recv(from, bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got < 0) return errno == EAGAIN || errno == EINTR;
    begin = 0;
    end = static_cast<size_t>(got);
    if (got == 0) isOver = true;
    return true;
  }
  bool write() {
    ssize_t put = send(to, bytes.data() + begin, end - begin, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (put < 0) return errno == EAGAIN || errno == EINTR;
    begin += static_cast<size_t>(put);
    return true;
  }
};

}  // namespace

void splice(kj::AutoCloseFd one, kj::AutoCloseFd other) {
  Direction directions[] = {{one, other}, {other, one}};
  while (true) {
    pollfd polled[] = {{one, 0, 0}, {other, 0, 0}};
    for (int i = 0; i < 2; ++i) {
      Direction& direction = directions[i];
      if (direction.isOver && direction.isEmpty()) return;
      if (direction.isEmpty()) {
        polled[i].events |= POLLIN;
      } else {
        polled[1 - i].events |= POLLOUT;
      }
    }
    if (poll(polled, 2, -1) < 0 && errno != EINTR) return;
    for (int i = 0; i < 2; ++i) {
      Direction& direction = directions[i];
      if (direction.isEmpty() && (polled[i].revents & ~POLLOUT) != 0 && !direction.read()) return;
      if (!direction.isEmpty() && (polled[1 - i].revents & ~POLLIN) != 0 && !direction.write()) return;
    }
  }
}

}  // namespace vgpu::relay
