#include "tools/relay/lanes.h"

#include <kj/debug.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace vgpu::relay {
namespace {

// One piece that is being sent, and one that can follow immediately.
constexpr unsigned mostUnderWay = 2;
constexpr std::chrono::seconds farewell{1};

}  // namespace

Lanes::~Lanes() {
  end();
  const auto until = std::chrono::steady_clock::now() + farewell;
  while (!lanes.empty() && std::chrono::steady_clock::now() < until) {
    std::vector<pollfd> polled;
    addTo(polled);
    poll(polled.data(), polled.size(), 50);
    hear();
  }
}

kj::AutoCloseFd Lanes::add() {
  int ends[2];
  KJ_SYSCALL(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends));
  add(kj::AutoCloseFd(ends[0]));
  return kj::AutoCloseFd(ends[1]);
}

void Lanes::add(kj::AutoCloseFd relay) {
  KJ_REQUIRE(!isEnding || lanes.empty(), "a further connection was added while the others end");
  isEnding = false;
  lanes.push_back({kj::mv(relay)});
}

bool Lanes::hasReady() const {
  return !isEnding && std::ranges::any_of(lanes, [](auto& lane) { return lane.isReady; });
}

bool Lanes::hear() {
  bool any = false;
  for (size_t i = 0; i < lanes.size();) {
    bool isGone = false;
    any |= hear(lanes[i], isGone);
    if (!isGone) {
      ++i;
      continue;
    }
    if (lanes[i].isReady && !isEnding && ended.empty()) ended = "its process has ended";
    lanes.erase(lanes.begin() + static_cast<ptrdiff_t>(i));
  }
  return any;
}

bool Lanes::hear(One& lane, bool& isGone) {
  std::array<std::byte, sizeof(LaneReport) + mostLaneReason> said;
  for (bool any = false;; any = true) {
    const ssize_t got = recv(lane.socket, said.data(), said.size(), MSG_DONTWAIT);
    if (got > 0) {
      hear(lane, std::span(said).first(static_cast<size_t>(got)));
      continue;
    }
    if (got < 0 && errno == EINTR) continue;
    isGone = got == 0 || errno != EAGAIN;
    return any;
  }
}

void Lanes::hear(One& lane, std::span<const std::byte> bytes) {
  LaneSaid said{};
  std::memcpy(&said, bytes.data(), std::min(bytes.size(), sizeof said));
  if (isEnding) return;
  switch (said.what) {
    case LaneReport::ready:
      lane.isReady = true;
      link.setWayBeside(true);
      return;
    case LaneReport::sent:
      --lane.underWay;
      return;
    case LaneReport::arrived:
      arrivedAt = std::chrono::steady_clock::now();
      return link.arrivedBeside(said.piece.message, said.piece.bytes);
    case LaneReport::ended: {
      std::string why(bytes.size() - sizeof said.what, '\0');
      std::memcpy(why.data(), bytes.data() + sizeof said.what, why.size());
      (lane.isReady ? ended : notReady) = why;
      return;
    }
  }
}

bool Lanes::give() {
  bool any = false;
  for (One* lane = leastBusy(); lane != nullptr; lane = leastBusy()) {
    auto piece = nextPiece();
    if (!piece) return any;
    if (send(lane->socket, &*piece, sizeof *piece, MSG_NOSIGNAL | MSG_DONTWAIT) != sizeof *piece) {
      ended = "its process accepts no more data";
      return any;
    }
    ++lane->underWay;
    any = true;
  }
  return any;
}

// Null if all have enough to do.
Lanes::One* Lanes::leastBusy() {
  One* found = nullptr;
  for (auto& lane : lanes)
    if (lane.isReady && !isEnding && lane.underWay < mostUnderWay && (found == nullptr || lane.underWay < found->underWay))
      found = &lane;
  return found;
}

std::optional<Piece> Lanes::nextPiece() {
  if (!cutting) {
    cutting = link.nextBeside();
    given = 0;
  }
  if (!cutting) return std::nullopt;
  const auto bytes = std::min<uint32_t>(cutting->bytes - given, LanePacker::mostBytes);
  const Piece piece{cutting->message, cutting->slab, given, bytes, 0};
  given += bytes;
  if (given == cutting->bytes) cutting.reset();
  return piece;
}

void Lanes::end() {
  isEnding = true;
  link.setWayBeside(false);
  cutting.reset();
  ended.clear();
  for (auto& lane : lanes) shutdown(lane.socket, SHUT_WR);
}

void Lanes::addTo(std::vector<pollfd>& polled) const {
  for (auto& lane : lanes) polled.push_back({lane.socket, POLLIN, 0});
}

}  // namespace vgpu::relay
