#include "tools/relay/lane.h"

#include <kj/debug.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "tools/common/reason.h"
#include "vgpu/base/fail.h"
#include "vgpu/wire/futex.h"
#include "vgpu/wire/segment.h"

namespace vgpu::relay {
namespace {

constexpr uint64_t spinTime = 50'000;  // nanoseconds

std::span<std::byte> bytesIn(const Mapping& segment, const Piece& piece) {
  return {segment.data() + SegmentLayout::slabs + piece.slab * slabBytes + piece.offset, piece.bytes};
}

}  // namespace

Lane::Lane(kj::AutoCloseFd relay, const MemoryFile& segment) : relay(kj::mv(relay)), segment(segment) {
  KJ_REQUIRE(segment.bytes() == SegmentLayout::bytes, "a segment has the wrong size", segment.bytes());
}

void Lane::run(kj::FunctionParam<std::unique_ptr<ByteStream>()> connect) {
  auto caught = kj::runCatchingExceptions([&] {
    auto connection = connect();
    say(LaneReport::ready, {});
    carry(*connection);
    if (connection->hasEnded()) fail(connection->whyEnded());
  });
  KJ_IF_MAYBE (exception, caught) {
    std::string said(sizeof(LaneReport), '\0');
    const auto what = LaneReport::ended;
    std::memcpy(said.data(), &what, sizeof what);
    said += reasonOf(*exception).substr(0, mostLaneReason);
    ::send(relay, said.data(), said.size(), MSG_NOSIGNAL);
  }
}

void Lane::carry(ByteStream& connection) {
  Backoff backoff(spinTime);
  while (!connection.hasEnded() && !isOver) {
    bool isMoving = send(connection);
    isMoving |= receive(connection);
    if (!isMoving && Backoff::isLong() && backoff.spin()) continue;
    if (!isMoving && !connection.hasEnded() && !isOver) await(connection);
    backoff = Backoff(spinTime);
  }
}

// Gets the next piece to send. Returns false if there is none.
bool Lane::takePiece() {
  ssize_t got;
  do got = recv(relay, &sending, sizeof sending, MSG_DONTWAIT);
  while (got < 0 && errno == EINTR);
  isOver = got == 0 || (got < 0 && errno != EAGAIN);
  if (got != sizeof sending) return false;
  const auto piece = bytesIn(segment, sending);
  unsentBytes = packer.pack(piece);
  sending.packed = static_cast<uint32_t>(unsentBytes.size());
  unsentHead = std::as_bytes(std::span(&sending, 1));
  sendingSince = LanePacker::Clock::now();
  return true;
}

// Returns whether any byte was sent. Sends at most one piece, so that the other direction gets its turn.
bool Lane::send(ByteStream& connection) {
  if (unsentHead.empty() && unsentBytes.empty() && !takePiece()) return false;
  bool any = false;
  for (auto* part : {&unsentHead, &unsentBytes}) {
    while (!part->empty()) {
      const size_t put = connection.write(*part);
      if (put == 0) return any;
      *part = part->subspan(put);
      any = true;
    }
  }
  packer.noteSent(sending.packed, LanePacker::Clock::now() - sendingSince);
  say(LaneReport::sent, sending);
  return true;
}

// The same for receiving.
bool Lane::receive(ByteStream& connection) {
  bool any = false;
  while (arrivedHead < sizeof arriving) {
    const size_t got = connection.read(std::as_writable_bytes(std::span(&arriving, 1)).subspan(arrivedHead));
    if (got == 0) return any;
    any = true;
    arrivedHead += got;
    if (arrivedHead == sizeof arriving) check();
  }
  const bool isPacked = arriving.packed < arriving.bytes;
  room = isPacked ? packer.packedRoom().first(arriving.packed) : bytesIn(segment, arriving);
  while (arrivedBytes < room.size()) {
    const size_t got = connection.read(room.subspan(arrivedBytes));
    if (got == 0) return any;
    any = true;
    arrivedBytes += got;
  }
  if (isPacked && !LanePacker::unpack(room, bytesIn(segment, arriving))) fail("the other side sent a piece that is not an LZ4 block");
  say(LaneReport::arrived, arriving);
  arrivedHead = arrivedBytes = 0;
  return true;
}

void Lane::check() const {
  const bool fits = arriving.slab < slabCount && arriving.bytes > 0 && arriving.bytes <= LanePacker::mostBytes &&
                    arriving.offset <= slabBytes - arriving.bytes;
  if (!fits || arriving.packed == 0 || arriving.packed > arriving.bytes)
    fail("the other side sent a piece with an invalid position or size");
}

// While a piece is being sent, further pieces from the relay are not read, so only the end of the socket pair must end the sleep.
void Lane::await(ByteStream& connection) {
  const bool isSending = !unsentHead.empty() || !unsentBytes.empty();
  pollfd polled[] = {{connection.fd(), connection.eventsOf(true, isSending), 0},
                     {relay, static_cast<short>(isSending ? POLLRDHUP : POLLIN), 0}};
  if (poll(polled, 2, -1) < 0 && errno != EINTR) KJ_FAIL_SYSCALL("poll", errno);
  isOver = (polled[1].revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

// Blocks while the relay's queue is full.
void Lane::say(LaneReport what, const Piece& piece) {
  const LaneSaid said{what, piece};
  if (::send(relay, &said, sizeof said, MSG_NOSIGNAL) != sizeof said) isOver = true;
}

}  // namespace vgpu::relay
