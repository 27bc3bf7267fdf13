// The relay beside a program: it acts as the node towards the program. It makes the memory that a worker would make, and a state directory,
// and passes on what the program writes and sends, and what the other relay (node-side.h) sends.
//
// In a virtual machine, the program and the host's worker share the segment, a piece of the device's memory: nothing is mirrored, and only
// control messages and the object list are passed on.
//
// One process per session, one thread, and another for the bells. Its memory lives as long as the program, across suspends.
//
// If the session moves to another host, a second such process is started, the successor (vgpu-relay successor). It connects to the node
// there and offers that node's worker to the program as a daemon of this host would. The successor decides who has the session: it claims
// the handover (vgpu/wire/handover.h) in the program's own segment when the program has accepted, and tells the node afterwards.
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
  // `program`: its connection, from which nothing has been read. `directory`: the parent of state directories.
  ProgramSide(kj::AutoCloseFd program, const Endpoint& node, std::string directory);
  // Removes the state directory.
  ~ProgramSide() override;

  // The successor of `predecessor`, for the session of the program that waits in `stateDirectory`, if that session arrives at `node`, where
  // `token` identifies it; see follow().
  ProgramSide(const Endpoint& node, const SessionToken& token, std::string stateDirectory, kj::AutoCloseFd predecessor);

  // Asks the node for a session. Returns false if there is none; the program has been told why.
  bool open();
  // Connects to the node at which the session is to arrive. `predecessor` signals when the program may be contacted, and is closed if the
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
  // A machine that was saved with its suspended programs does not know, when it is restored, that its connections are gone, and its
  // programs cannot be resumed before it notices.
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
  kj::AutoCloseFd program;  // a pidfd; none if we cannot see the process
  std::string stateDirectory;
  kj::Array<capnp::word> asked;  // its `open` message, until there is a reply
  unsigned timesAsked = 0;
  std::optional<GuestPlace> guest;     // set if this is a virtual machine
  std::unique_ptr<GuestStream> begun;  // its mailbox after a reset by the host, until the host has said what it has received
  std::map<uint32_t, ControlChannel>
      former;  // channels with daemons of the former host: the program closes them when it goes on
  MemoryFile segmentFile;
  std::optional<Segment> segment;
  std::unique_ptr<ProgramMirror> mirror;
  std::unique_ptr<BellThread> bells;
  const LaneWish laneWish = relay::laneWish();
  uint64_t attempts = 0;    // number of attempts to connect
  uint32_t connection = 0;  // the number of the present connection
  Clock::time_point lanesTriedAt{}, lanesReadyAt{};
  bool hasHadLanes = false;
  // A reply of the program that is sent only after all earlier frames.
  struct GateClosed {
    uint32_t channel;
    kj::Array<capnp::word> message;
  };
  std::optional<GateClosed> gateClosed;

  // While the session moves to another host, the program has two relays, and this one sends nothing of its memory.
  kj::AutoCloseFd successor;    // the process that may take the program over; a byte tells it that the program may be contacted
  bool isMoving = false;        // the program has been told
  bool isSuspended = false;     // likewise, and nobody has resumed it
  bool isSucceeded = false;     // the session belongs to the successor
  kj::AutoCloseFd predecessor;  // open until the session is ours
  bool mayMeet = false;
  std::optional<std::pair<uint32_t, std::vector<std::byte>>> meeting;  // a `reattach` that waits for that
};

}  // namespace vgpu::relay
