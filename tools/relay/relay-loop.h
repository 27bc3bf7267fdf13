// What both relays of a session do: carry a link over a connection, keep the mirror and the control channels going, and sleep
// while there is nothing to do. One thread.
//
// When the connection breaks, or a further one (lanes.h) does, or the peer has said nothing for a while, the link stays:
// reconnect() brings another connection, until a limit. Meanwhile nothing of the mirror is sent, so the program waits where it
// waits for the GPU, and its rings fill. One in the memory of a virtual machine (guest-stream.h) loses nothing, and is not made
// again.
#pragma once

#include <poll.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tools/relay/lanes.h"
#include "vgpu/control/byte-stream.h"
#include "vgpu/control/channel.h"
#include "vgpu/wire/futex.h"
#include "vgpu/wire/link.h"

namespace vgpu::relay {

using Clock = std::chrono::steady_clock;

// How long a connection may be cut: VGPU_LINK_LIMIT, in seconds.
std::chrono::seconds reconnectLimit();

class RelayLoop {
 public:
  virtual ~RelayLoop() noexcept(false) = default;
  // Until done(). Throws kj::Exception if the session cannot go on.
  void run();

 protected:
  RelayLoop() = default;

  // A message of the link.
  virtual void take(const LinkMessage& message) = 0;
  // Adds messages of the mirror. Whether there were any.
  virtual bool produce() = 0;
  // A control channel, or what else was watched, can be read.
  virtual void serveChannel(uint32_t channel) = 0;
  virtual void serveWatched(int fd) = 0;
  // While the connection is cut: a new one, if there is one by now, greeted and restarted.
  virtual std::unique_ptr<ByteStream> reconnect() = 0;
  // Whether there can be another connection.
  virtual bool canReconnect() const { return true; }
  // The connection has been cut for too long, or for good.
  virtual void giveUp(const std::string& why) = 0;
  // True if there is nothing to do until a descriptor is ready or that time has passed.
  virtual bool prepareToSleep() = 0;
  virtual void awake() {}
  virtual uint64_t mostSleep(Backoff& backoff) = 0;  // nanoseconds
  // Nothing is to be written but what waits to be: neither acknowledgements nor signs of life.
  virtual bool isSilent() const { return false; }
  // How long a connection may be cut.
  virtual std::chrono::seconds mostCut() const { return reconnectLimit(); }
  // When a connection that brings nothing counts as broken.
  virtual std::chrono::seconds mostSilence() const { return std::chrono::seconds(15); }
  // After which without a message something is said.
  virtual std::chrono::seconds saysAfter() const { return std::chrono::seconds(5); }

  void use(std::unique_ptr<ByteStream> connection);
  // There is none yet: reconnect() will bring the first one.
  void beginCut() { cutSince = Clock::now(); }
  bool isCut() const { return stream == nullptr; }
  // Lets go of the connection that is there; reconnect() is asked at once.
  void replaceConnection(const std::string& why) {
    if (!isCut()) cut(why);
  }
  // Ends the loop when everything that was sent has been acknowledged, or cannot be in time.
  void finish();
  void watch(int fd) { watched.push_back(fd); }
  void unwatch(int fd) { std::erase(watched, fd); }

  Link link;
  Lanes lanes{link};
  std::map<uint32_t, ControlChannel> channels;

 private:
  bool takeMessages();
  bool readSome();
  bool writeSome();
  void cut(const std::string& why);
  bool hearLanes();
  void sleep(Backoff& backoff);
  void tend(std::span<const pollfd> polledChannels, const std::vector<uint32_t>& numbers, std::span<const pollfd> polledWatched);
  void keepAlive();
  bool isDone() const;

  std::unique_ptr<ByteStream> stream;
  std::vector<int> watched;
  Clock::time_point heard = Clock::now(), said = heard;
  Clock::time_point triedAt{};
  Clock::time_point waitedFrom = heard;  // for bytes beside a message
  std::optional<Clock::time_point> cutSince, endsBy;
  std::string whyCut;
};

}  // namespace vgpu::relay
