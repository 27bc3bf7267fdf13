#include "tools/relay/splice.h"

#include <kj/debug.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace vgpu::relay {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t bufferBytes = 256 * 1024;
constexpr std::chrono::milliseconds mostAfterEnd{5000};

// One direction, with the bytes that have been read and not written yet. If the receiver takes nothing more, bytes are still read, and
// dropped: closing a connection with unread bytes resets it, and the other side's last bytes would be lost.
class Direction {
 public:
  Direction(ByteStream& from, ByteStream& to) : from(from), to(to) {}

  bool isOver() const { return !from.bringsMore() && isEmpty(); }
  // The sender has ended, or the receiver takes nothing more.
  bool isEnding() const { return isOver() || !to.takesMore(); }
  bool mustRead() const { return isEmpty() && from.bringsMore(); }
  bool mustWrite() const { return !isEmpty(); }

  // Returns whether any byte was moved. Passes the end of the sender on to the receiver.
  bool move() {
    if (mustRead()) {
      begin = 0;
      end = from.read(bytes);
    }
    const size_t had = end - begin;
    if (had > 0) begin += to.write(std::span(bytes).subspan(begin, had));
    if (!to.takesMore()) begin = end;
    if (isOver() && !std::exchange(hasClosed, true)) shutdown(to.fd(), SHUT_WR);
    return end - begin < had;
  }

 private:
  bool isEmpty() const { return begin == end; }

  ByteStream &from, &to;
  std::vector<std::byte> bytes = std::vector<std::byte>(bufferBytes);
  size_t begin = 0, end = 0;
  bool hasClosed = false;
};

// poll() reports the end of a connection even without requested events, so a stream without events is left out.
pollfd waitFor(const ByteStream& stream, bool reading, bool writing) {
  short events = stream.eventsOf(reading, writing);
  return {events == 0 ? -1 : stream.fd(), events, 0};
}

}  // namespace

void splice(ByteStream& one, ByteStream& other) {
  Direction there(one, other), back(other, one);
  std::optional<Clock::time_point> last;
  while (true) {
    bool isMoving = there.move();
    isMoving |= back.move();
    if (there.isOver() && back.isOver()) return;
    if (!last && (there.isEnding() || back.isEnding())) last = Clock::now() + mostAfterEnd;
    const auto left = last ? std::chrono::ceil<std::chrono::milliseconds>(*last - Clock::now()) : mostAfterEnd;
    if (left.count() <= 0) return;
    if (isMoving) continue;
    pollfd polled[] = {waitFor(one, there.mustRead(), back.mustWrite()), waitFor(other, back.mustRead(), there.mustWrite())};
    if (poll(polled, 2, last ? static_cast<int>(left.count()) : -1) < 0 && errno != EINTR) KJ_FAIL_SYSCALL("poll", errno);
  }
}

}  // namespace vgpu::relay
