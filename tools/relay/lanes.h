// The further connections of a session as its relay has them: each is a lane (lane.h), which another thread or process serves.
// What goes beside the link's messages is cut into pieces, and each piece goes to the lane that has the least to do.
//
// One that ends ends the connection of the session: all end, another connection is made, and on it further ones. Only when none
// of the old ones is left, that could still write into the segment, may that be. Used by the relay's thread.
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
  // Waits, but not long, until nothing writes into the segment.
  ~Lanes();

  // A socket pair for a lane, of which the other end is returned.
  kj::AutoCloseFd add();
  void add(kj::AutoCloseFd relay);

  // Takes what lanes report. Whether there was anything. Throws kj::Exception if the peer sends what cannot be.
  bool hear();
  // Gives them what goes beside the link's messages. Likewise.
  bool give();
  // Whether anything waits for what they report.
  bool isAwaited() const { return cutting || link.hasMoreBeside() || link.isWaitingBeside(); }
  // All are to end. What they still report is dropped.
  void end();

  size_t count() const { return lanes.size(); }  // also of those that are not connected yet, or have not ended yet
  bool hasReady() const;
  // Why one that was ready has ended by itself; empty if none has. And why the last one that did not become ready has not.
  const std::string& whyEnded() const { return ended; }
  const std::string& whyNotReady() const { return notReady; }
  std::chrono::steady_clock::time_point lastArrival() const { return arrivedAt; }
  void addTo(std::vector<pollfd>& polled) const;

 private:
  struct One {
    kj::AutoCloseFd socket;
    bool isReady = false;
    unsigned underWay = 0;  // pieces that it has not sent yet
  };
  bool hear(One& lane, bool& isGone);
  void hear(One& lane, std::span<const std::byte> said);
  One* leastBusy();
  std::optional<Piece> nextPiece();

  Link& link;
  std::vector<One> lanes;
  bool isEnding = false;
  std::optional<Beside> cutting;  // of which pieces are being given
  uint32_t given = 0;             // bytes of it
  std::string ended, notReady;
  std::chrono::steady_clock::time_point arrivedAt{};
};

}  // namespace vgpu::relay
