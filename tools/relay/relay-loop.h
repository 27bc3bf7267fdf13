// The common part of a session's two relays: runs a link over a connection, serves the mirror and the control channels, and sleeps while
// there is nothing to do. One thread.
//
// When the connection or a lane (lanes.h) breaks, or the peer is silent for too long, the link is kept: reconnect() provides another
// connection, within a time limit. Meanwhile nothing of the mirror is sent, so the program waits wherever it waits for the GPU, and its
// rings fill. A connection in the memory of a virtual machine (guest-stream.h) loses nothing, and is not replaced.
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

// How long a connection may be missing: VGPU_LINK_LIMIT, in seconds.
std::chrono::seconds reconnectLimit();

class RelayLoop {
 public:
  virtual ~RelayLoop() noexcept(false) = default;
  // Runs until done(). Throws kj::Exception if the session cannot go on.
  void run();

 protected:
  RelayLoop() = default;

  // Handles a message of the link.
  virtual void take(const LinkMessage& message) = 0;
  // Adds messages of the mirror. Returns whether there were any.
  virtual bool produce() = 0;
  // A control channel, or another watched descriptor, is readable.
  virtual void serveChannel(uint32_t channel) = 0;
  virtual void serveWatched(int fd) = 0;
  // While there is no connection: returns a new one, greeted and restarted, if there is one by now.
  virtual std::unique_ptr<ByteStream> reconnect() = 0;
  // Whether there can be another connection.
  virtual bool canReconnect() const { return true; }
  // The connection has been missing for too long, or for good.
  virtual void giveUp(const std::string& why) = 0;
  // Returns true if there is nothing to do until a descriptor is ready or the sleep time has passed.
  virtual bool prepareToSleep() = 0;
  virtual void awake() {}
  virtual uint64_t mostSleep(Backoff& backoff) = 0;  // nanoseconds
  // Whether to write only data that waits to be sent, and neither acknowledgements nor keepalives.
  virtual bool isSilent() const { return false; }
  // How long the connection may be missing.
  virtual std::chrono::seconds mostCut() const { return reconnectLimit(); }
  // How long a connection may be silent before it counts as broken.
  virtual std::chrono::seconds mostSilence() const { return std::chrono::seconds(15); }
  // The interval without messages after which a keepalive is sent.
  virtual std::chrono::seconds saysAfter() const { return std::chrono::seconds(5); }

  void use(std::unique_ptr<ByteStream> connection);
  // There is no connection yet: reconnect() will provide the first one.
  void beginCut() { cutSince = Clock::now(); }
  bool isCut() const { return stream == nullptr; }
  // Drops the present connection; reconnect() is called at once.
  void replaceConnection(const std::string& why) {
    if (!isCut()) cut(why);
  }
  // Ends the loop when everything sent has been acknowledged, or cannot be in time.
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
