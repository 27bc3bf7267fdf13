// The relay's view of a session's additional connections: each is a lane (lane.h), served by another thread or process. The bytes beside
// the link's messages are cut into pieces, and each piece goes to the least busy lane.
//
// When a lane ends, the session's connection is given up: all lanes end, and a new connection is made with new lanes. This must wait until
// no old lane is left that could still write into the segment. Used by the relay's thread.
#pragma once

#include <kj/io.h>
#include <poll.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "tools/relay/lane.h"
#include "vgpu/wire/link.h"

namespace vgpu::relay {

class Lanes {
 public:
  explicit Lanes(Link& link) : link(link) {}
  // Waits, for a limited time, until no lane writes into the segment.
  ~Lanes();

  // Makes a socket pair for a lane, and returns the lane's end.
  kj::AutoCloseFd add();
  void add(kj::AutoCloseFd relay);

  // Handles the lanes' reports. Returns whether there were any. Throws kj::Exception if the peer sends something impossible.
  bool hear();
  // Gives the lanes pieces to send. Returns and throws likewise.
  bool give();
  // Whether anything waits for the lanes' reports.
  bool isAwaited() const { return cutting || link.hasMoreBeside() || link.isWaitingBeside(); }
  // Tells all lanes to end. Their further reports are dropped.
  void end();

  size_t count() const { return lanes.size(); }  // including lanes that are not connected yet, or have not ended yet
  bool hasReady() const;
  // Why a lane that was ready has ended by itself; empty if none has. And why the latest lane that failed to become ready has failed.
  const std::string& whyEnded() const { return ended; }
  const std::string& whyNotReady() const { return notReady; }
  std::chrono::steady_clock::time_point lastArrival() const { return arrivedAt; }
  void addTo(std::vector<pollfd>& polled) const;

 private:
  struct One {
    kj::AutoCloseFd socket;
    bool isReady = false;
    unsigned underWay = 0;  // pieces that it has not finished sending
  };
  bool hear(One& lane, bool& isGone);
  void hear(One& lane, std::span<const std::byte> said);
  One* leastBusy();
  std::optional<Piece> nextPiece();

  Link& link;
  std::vector<One> lanes;
  bool isEnding = false;
  std::optional<Beside> cutting;  // being cut into pieces
  uint32_t given = 0;             // bytes of it that lanes have got
  std::string ended, notReady;
  std::chrono::steady_clock::time_point arrivedAt{};
};

}  // namespace vgpu::relay
