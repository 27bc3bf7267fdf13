// The relay beside a program: to the program it is the node. It makes the memory that a worker would make, and a state directory,
// and passes on what the program writes there and says, and what the other relay (node-side.h) brings.
//
// In a virtual machine the program shares its segment with the host's worker, a piece of the device's memory: then nothing is
// mirrored, and what passes here are control messages and the object list.
//
// One process a session, one thread and one for the bells. Its memory lives as long as the program, over suspends.
//
// If the session moves to another host, a second such process is started, the successor (vgpu-relay successor), which connects
// with the node there and offers its worker to the program as a daemon of this host would. It decides who has the session: it
// claims the handover (vgpu/wire/handover.h) in the program's own segment when the program has accepted, and tells the node after
// that.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tools/relay/bell-thread.h"
#include "tools/relay/guest-stream.h"
#include "tools/relay/lane-thread.h"
#include "tools/relay/relay-loop.h"
#include "vgpu/control/control.capnp.h"
#include "vgpu/control/endpoint.h"
#include "vgpu/control/greeting.h"
#include "vgpu/wire/program-mirror.h"

namespace vgpu::relay {

class ProgramSide final : public RelayLoop {
 public:
  // `program`: its connection, from which nothing has been read. `directory`: where state directories are made.
  ProgramSide(kj::AutoCloseFd program, const Endpoint& node, std::string directory);
  // Removes the state directory.
  ~ProgramSide() override;

  // The one that takes `predecessor`'s place if the session of the program that waits in `stateDirectory` arrives at `node`,
  // where `token` names it; see follow().
  ProgramSide(const Endpoint& node, const SessionToken& token, std::string stateDirectory, kj::AutoCloseFd predecessor);

  // Asks the node for a session. False if there is none; the program has been told why.
  bool open();
  // Connects with the node that the session is to arrive at. `predecessor` says when the program may be met, and ends if the
  // session stays.
  void follow();

 private:
  void take(const LinkMessage& message) override;
  bool produce() override;
  void serveChannel(uint32_t channel) override;
  void serveWatched(int fd) override;
  std::unique_ptr<ByteStream> reconnect() override;
  bool canReconnect() const override { return !guest || isOutdated() || isAsking(); }
  void giveUp(const std::string& why) override;
  bool prepareToSleep() override;
  void awake() override;
  uint64_t mostSleep(Backoff& backoff) override;
  std::chrono::seconds mostSilence() const override;
  // A machine that was saved with its suspended programs does not know, when it is restored, that its connections are gone; until
  // it does, they cannot be resumed.
  std::chrono::seconds saysAfter() const override {
    return isSuspended && !guest ? std::chrono::seconds(1) : RelayLoop::saysAfter();
  }

  std::unique_ptr<ByteStream> reachHost();
  std::unique_ptr<ByteStream> followHost();
  std::unique_ptr<ByteStream> askAgain();
  // The program waits for a session.
  bool isAsking() const { return asked != nullptr; }
  bool isOutdated() const { return guest->words().begun.load(std::memory_order_acquire) != guest->begun || begun != nullptr; }
  void takeOpened(std::span<const std::byte> bytes);
  void takeControl(uint32_t channel, std::span<const std::byte> bytes);
  void rewrite(uint32_t channel);
  void tellObjects();
  void takeReattach(uint32_t channel, std::span<const std::byte> bytes);
  void passClosed(uint32_t channel);
  void passGateClosed();
  void tendLanes();
  void watchProgram(pid_t pid);
  void meetProgram(uint32_t channel, std::span<const std::byte> bytes);
  void adopt(ControlMessage& opened);
  bool claim(uint64_t handover);
  void servePredecessor();
  void startSuccessor(control::Approach::Reader approach);
  bool owns() const { return predecessor.get() < 0 && !isSucceeded; }
  void sendObjects();
  void close(uint32_t channel);
  void end();
  void lose(const std::string& why);

  const Endpoint node;
  const std::string directory;
  const SessionToken token = newSessionToken();
  kj::AutoCloseFd program;  // a pidfd; none if its process cannot be seen
  std::string stateDirectory;
  kj::Array<capnp::word> asked;  // its `open`, until there is a reply
  unsigned timesAsked = 0;
  std::optional<GuestPlace> guest;     // if this is a virtual machine
  std::unique_ptr<GuestStream> begun;  // its mailbox that the host has begun anew, until that has said what it has received
  std::map<uint32_t, ControlChannel>
      former;  // with daemons of the host that it has left: the program closes them when it goes on
  MemoryFile segmentFile;
  std::optional<Segment> segment;
  std::unique_ptr<ProgramMirror> mirror;
  std::unique_ptr<BellThread> bells;
  const LaneWish laneWish = relay::laneWish();
  uint64_t attempts = 0;    // to connect
  uint32_t connection = 0;  // the number of the one that there is
  Clock::time_point lanesTriedAt{}, lanesReadyAt{};
  bool hasHadLanes = false;
  // A reply that the program has given: it goes when all frames before it have gone.
  struct GateClosed {
    uint32_t channel;
    kj::Array<capnp::word> message;
  };
  std::optional<GateClosed> gateClosed;

  // While the session moves to another host: two relays are beside the program, and this one sends nothing of its memory.
  kj::AutoCloseFd successor;    // of which the program may become; what it is told: a byte when the program may be met
  bool isMoving = false;        // the program has been told so
  bool isSuspended = false;     // likewise, and nobody has resumed it
  bool isSucceeded = false;     // it is the successor's
  kj::AutoCloseFd predecessor;  // until the session is ours
  bool mayMeet = false;
  std::optional<std::pair<uint32_t, std::vector<std::byte>>> meeting;  // `reattach`, until then
};

}  // namespace vgpu::relay
