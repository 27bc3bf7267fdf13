#include "tools/relay/splice.h"

#include <kj/debug.h>
#include <poll.h>

#include <cerrno>
#include <vector>

namespace vgpu::relay {
namespace {

constexpr size_t bufferBytes = 256 * 1024;

// One direction: what has been read and not written yet.
struct Direction {
  ByteStream &from, &to;
  std::vector<std::byte> bytes = std::vector<std::byte>(bufferBytes);
  size_t begin = 0, end = 0;

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
    begin = to.hasEnded() ? end : begin + put;
    return put > 0;
  }
};

// poll() says that a connection has ended even to who asks for nothing: who asks for nothing leaves it out.
pollfd waitFor(const ByteStream& stream, bool reading, bool writing) {
  short events = stream.eventsOf(reading, writing);
  return {events == 0 ? -1 : stream.fd(), events, 0};
}

}  // namespace

void splice(ByteStream& one, ByteStream& other) {
  Direction there{one, other}, back{other, one};
  while (true) {
    bool isMoving = there.move();
    isMoving |= back.move();
    if (there.isOver() || back.isOver()) return;
    if (isMoving) continue;
    pollfd polled[] = {waitFor(one, there.isEmpty(), !back.isEmpty()), waitFor(other, back.isEmpty(), !there.isEmpty())};
    if (poll(polled, 2, -1) < 0 && errno != EINTR) KJ_FAIL_SYSCALL("poll", errno);
  }
}

}  // namespace vgpu::relay
