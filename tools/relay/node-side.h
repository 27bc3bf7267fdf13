// The relay beside a vgpud: to the daemon, and to every daemon of its host that resumes the session, it is the program. It has
// the memory that the worker shares, and passes on what the worker and the daemon do there and say.
//
// If the program is in a virtual machine of this host, the worker shares its memory with that machine: then there is no mirror,
// and what passes here are control messages and the object list.
//
// One process a session, one thread. It lives as long as the program; its process is the session's owner on this host.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "tools/relay/guest-stream.h"
#include "tools/relay/relay-loop.h"
#include "vgpu/control/control.capnp.h"
#include "vgpu/control/greeting.h"
#include "vgpu/wire/worker-mirror.h"

namespace vgpu::relay {

class NodeSide final : public RelayLoop {
 public:
  // `connection`: greeted. `runDirectory`: of the vgpud that gives the session. A connection that takes this one's place comes by
  // the socket relays/TOKEN there.
  NodeSide(std::unique_ptr<ByteStream> connection, std::string runDirectory, const Greeting& greeting);
  // The same of a session that arrives from another host: `program` is known to the daemon as its program.
  NodeSide(std::unique_ptr<ByteStream> connection, std::string runDirectory, const Greeting& greeting, ControlChannel program);
  // The same of a program in a virtual machine, which has `place` of its memory. Ends that place's session when it is destroyed.
  // Whoever connects with the socket `attachSocket` has it begin the mailbox anew, and gets a byte when it has.
  NodeSide(GuestPlace place, std::string runDirectory, const std::string& attachSocket);
  // The same of a session that arrives from another host with its virtual machine: `daemon` knows this process as its program,
  // which is asked when the machine is here.
  struct Program {
    std::string name, path;
    pid_t pid = 0;  // there
  };
  NodeSide(GuestPlace place, std::string runDirectory, const std::string& attachSocket, ControlChannel daemon, Program program);
  ~NodeSide() override;

  // Gives a connection of a session that exists to the relay that has it. False if there is none.
  static bool passOn(int connection, const std::string& runDirectory, const Greeting& greeting);
  // Offers the relay that has the session a lane, for a further connection. Nothing if it wants none.
  static std::unique_ptr<Lane> offerLane(const std::string& runDirectory, const Greeting& greeting);

 private:
  // In the run directory: by which connections for the session come, and with the suffix lanes.
  static std::string socketOf(const std::string& runDirectory, const SessionToken& token);
  static constexpr const char* lanesSuffix = "-lanes";
  static MemoryFile adoptMemory(kj::AutoCloseFd& fd);

  void take(const LinkMessage& message) override;
  bool produce() override;
  void serveChannel(uint32_t channel) override;
  void serveWatched(int fd) override;
  std::unique_ptr<ByteStream> reconnect() override;
  bool canReconnect() const override { return !guest || isAttaching || isArriving || isStill; }
  // While a machine may be saved or moved, nothing is written into its memory that need not be: it would not see all of it.
  bool isSilent() const override { return guest && isStill; }
  std::chrono::seconds mostCut() const override;
  void giveUp(const std::string& why) override;
  bool prepareToSleep() override { return true; }
  uint64_t mostSleep(Backoff& backoff) override;
  std::chrono::seconds mostSilence() const override;

  bool isOpened() const { return stateFolder.get() >= 0; }
  void takeOpen(std::span<const std::byte> bytes);
  void takeControl(uint32_t channel, std::span<const std::byte> bytes);
  void takeObjects(std::span<const std::byte> bytes);
  void takeConnection();
  void attach();
  std::unique_ptr<ByteStream> followGuest();
  std::unique_ptr<ByteStream> meetMachine();
  void answerForProgram(ControlMessage& received);
  void openForProgram(const std::string& session);
  void leave(uint32_t channel);
  void takeLane();
  void takeDaemon();
  void note(control::ToSession::Reader message);
  void passClosed(uint32_t channel);
  void adopt(ControlMessage& answer);
  void enterFolder(control::Opened::Reader opened);

  const std::string runDirectory, socketPath;
  std::optional<GuestPlace> guest;     // if the program is in a virtual machine
  std::unique_ptr<GuestStream> begun;  // its mailbox that was begun anew, until the machine follows
  bool isAttaching = false;
  bool isStill = false;                                   // the program is suspended, or about to move with its machine
  Program program;                                        // of a session that arrives with its machine,
  kj::Array<capnp::word> reattachMessage, openedMessage;  // and what it will be told
  Clock::time_point begunAt{};
  kj::AutoCloseFd acceptor;     // of connections that take this one's place,
  kj::AutoCloseFd replacement;  // and the next one, greeted,
  Greeting latest{};            // of the one that was greeted last
  uint32_t connections = 0;     // that have taken another one's place
  kj::AutoCloseFd laneAcceptor;  // of processes that have a further connection
  kj::AutoCloseFd reattach;     // of daemons, once there is a session
  kj::AutoCloseFd stateFolder;
  std::string stateDirectory;
  MemoryFile segmentFile, hostArenaFile;
  std::optional<Segment> segment;
  std::unique_ptr<WorkerMirror> mirror;
  kj::AutoCloseFd objects;  // the object list on its way
  uint32_t lastChannel = 0;
  uint64_t accepted = 0;  // the number of the handover that the program has accepted last
  bool isArriving = false;  // from another host, and no worker here has it yet
  bool isHeld = false;    // the gate is closed: the program does not need a daemon
};

}  // namespace vgpu::relay
