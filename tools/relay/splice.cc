#include "tools/relay/splice.h"

#include <kj/debug.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <span>
#include <vector>

namespace vgpu::relay {
namespace {

constexpr size_t bufferBytes = 256 * 1024;
constexpr std::chrono::milliseconds mostAfterRefusal{5000};

// One direction: what has been read and not written yet.
struct Direction {
  ByteStream &from, &to;
  std::vector<std::byte> bytes = std::vector<std::byte>(bufferBytes);
  size_t begin = 0, end = 0;
  bool isRefused = false;  // there were bytes that nobody takes

  bool isEmpty() const { return begin == end; }
  bool isOver() const { return from.hasEnded() && isEmpty(); }

  // Whether any byte was moved. What nobody reads any more is dropped.
  bool move() {
    if (isEmpty() && !from.hasEnded()) {
      begin = 0;
      end = from.read(bytes);
    }
    if (isEmpty()) return false;
    size_t put = to.hasEnded() ? 0 : to.write(std::span(bytes).subspan(begin, end - begin));
    isRefused = to.hasEnded();
    begin = isRefused ? end : begin + put;
    return put > 0;
  }
};

// poll() says that a connection has ended even to who asks for nothing: who asks for nothing leaves it out.
pollfd waitFor(const ByteStream& stream, bool reading, bool writing) {
  short events = stream.eventsOf(reading, writing);
  return {events == 0 ? -1 : stream.fd(), events, 0};
}

// Of a stream that takes nothing more, to the other: it may still say why, as the target of a migration does. What comes for it
// meanwhile is dropped, not left unread: else the system resets the other connection, and the reason is lost on its way. The other
// learns at once that no more comes, and ends the connection when it has read all.
void passReason(ByteStream& from, ByteStream& to) {
  const auto last = std::chrono::steady_clock::now() + mostAfterRefusal;
  std::vector<std::byte> bytes(bufferBytes), dropped(bufferBytes);
  size_t begin = 0, end = 0;
  bool isReadable = false, isOver = false;
  for (auto left = mostAfterRefusal; left.count() > 0 && !to.hasEnded();
       left = std::chrono::duration_cast<std::chrono::milliseconds>(last - std::chrono::steady_clock::now())) {
    const bool hasDropped = to.read(dropped) > 0;
    if (begin == end && !isOver) {
      begin = 0;
      end = from.read(bytes);
      isOver = end == 0 && isReadable;
    }
    begin += to.write(std::span(bytes).subspan(begin, end - begin));
    if (isOver && begin == end) shutdown(to.fd(), SHUT_WR);
    pollfd polled[] = {{isOver || begin < end ? -1 : from.fd(), POLLIN, 0}, waitFor(to, true, begin < end)};
    if (poll(polled, 2, hasDropped ? 0 : static_cast<int>(left.count())) < 0 && errno != EINTR) KJ_FAIL_SYSCALL("poll", errno);
    isReadable = polled[0].revents != 0;
  }
}

}  // namespace

void splice(ByteStream& one, ByteStream& other) {
  Direction there{one, other}, back{other, one};
  while (true) {
    bool isMoving = there.move();
    isMoving |= back.move();
    if (there.isOver() || back.isOver()) break;
    if (isMoving) continue;
    pollfd polled[] = {waitFor(one, there.isEmpty(), !back.isEmpty()), waitFor(other, back.isEmpty(), !there.isEmpty())};
    if (poll(polled, 2, -1) < 0 && errno != EINTR) KJ_FAIL_SYSCALL("poll", errno);
  }
  if (there.isRefused) passReason(other, one);
  if (back.isRefused) passReason(one, other);
}

}  // namespace vgpu::relay
