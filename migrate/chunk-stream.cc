#include "migrate/chunk-stream.h"

#include <fmt/format.h>
#include <kj/common.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "vgpu/base/fail.h"

namespace vgpu::migrate {

namespace {

constexpr size_t mostRefusalBytes = 4096;
constexpr int refusalMilliseconds = 1000;

}  // namespace

void ChunkStream::send(const ChunkMessage& message, std::span<const std::byte> bytes) {
  std::array<iovec, 2> parts{iovec{const_cast<ChunkMessage*>(&message), sizeof message},
                             iovec{const_cast<std::byte*>(bytes.data()), bytes.size()}};
  msghdr header{};
  header.msg_iov = parts.data();
  header.msg_iovlen = parts.size();
  while (parts[0].iov_len + parts[1].iov_len > 0) {
    ssize_t sent = sendmsg(socket, &header, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) {
      int error = errno;
      ChunkMessage answer;
      pollfd polled{socket, POLLIN, 0};  // the peer's reason may still arrive
      if (poll(&polled, 1, refusalMilliseconds) > 0 && recv(socket, &answer, sizeof answer, MSG_DONTWAIT) == sizeof answer)
        failAsRefused(answer);
      fail(fmt::format("the target of the migration accepts no more memory: {}", strerror(error)));
    }
    auto left = static_cast<size_t>(sent);
    for (iovec& part : parts) {
      size_t gone = std::min(left, part.iov_len);
      part.iov_base = static_cast<char*>(part.iov_base) + gone;
      part.iov_len -= gone;
      left -= gone;
    }
  }
}

ChunkMessage ChunkStream::receive() {
  ChunkMessage message;
  receive(std::as_writable_bytes(std::span(&message, 1)));
  return message;
}

void ChunkStream::receive(std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    ssize_t got = recv(socket, bytes.data(), bytes.size(), MSG_WAITALL);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail(fmt::format("the memory that a migration sends cannot be read: {}", strerror(errno)));
    if (got == 0) fail("the source of the migration has closed the stream of memory");
    bytes = bytes.subspan(static_cast<size_t>(got));
  }
}

void ChunkStream::flush() {
  send({.kind = MessageKind::flush});
  ChunkMessage answer = receive();
  failAsRefused(answer);
  if (answer.kind != MessageKind::flush) fail("the target of the migration answered a flush with another kind of message");
}

void ChunkStream::refuse(const std::string& why) {
  KJ_DEFER(shutDown());
  std::string text = why.substr(0, mostRefusalBytes);
  send({.kind = MessageKind::refused, .bytes = text.size()}, std::as_bytes(std::span(text)));
}

void ChunkStream::failAsRefused(const ChunkMessage& message) {
  if (message.kind != MessageKind::refused || message.bytes > mostRefusalBytes) return;
  std::string why(message.bytes, 0);
  receive(std::as_writable_bytes(std::span(why)));
  fail(why);
}

void ChunkStream::endReceiving() { shutdown(socket, SHUT_RD); }

void ChunkStream::shutDown() { shutdown(socket, SHUT_RDWR); }

}  // namespace vgpu::migrate
