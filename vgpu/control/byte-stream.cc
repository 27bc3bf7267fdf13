#include "vgpu/control/byte-stream.h"

#include <fcntl.h>
#include <kj/debug.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

namespace vgpu {

PlainStream::PlainStream(kj::AutoCloseFd connected) : socket(kj::mv(connected)) {
  KJ_SYSCALL(fcntl(socket, F_SETFL, O_NONBLOCK));
}

size_t PlainStream::read(std::span<std::byte> room) {
  ssize_t got;
  do got = recv(socket, room.data(), room.size(), 0);
  while (got < 0 && errno == EINTR);
  if (got > 0) return static_cast<size_t>(got);
  if (got == 0 && !room.empty()) endReading("the other side has closed the connection");
  if (got < 0 && errno != EAGAIN) endReading(std::strerror(errno));
  return 0;
}

size_t PlainStream::write(std::span<const std::byte> bytes) {
  ssize_t put;
  do put = send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  while (put < 0 && errno == EINTR);
  if (put >= 0) return static_cast<size_t>(put);
  if (errno != EAGAIN) endWriting(std::strerror(errno));
  return 0;
}

short PlainStream::eventsOf(bool reading, bool writing) const {
  return static_cast<short>((reading ? POLLIN : 0) | (writing ? POLLOUT : 0));
}

}  // namespace vgpu
