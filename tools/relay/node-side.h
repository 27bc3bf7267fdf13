// The relay beside a vgpud: it acts as the program towards the daemon, and towards every daemon of its host that resumes the session. It
// has the memory that the worker shares, and passes on what the worker writes and the daemon sends.
//
// If the program is in a virtual machine of this host, the worker shares memory with that machine: there is no mirror, and only control
// messages and the object list are passed on.
//
// One process per session, one thread. It lives as long as the program; its process is the session's owner on this host.
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
  // `connection`: greeted. `runDirectory`: that of the vgpud that opens the session. A connection that replaces this one arrives through
  // the socket relays/TOKEN in it.
  NodeSide(std::unique_ptr<ByteStream> connection, std::string runDirectory, const Greeting& greeting);
  // The same for a session that arrives from another host: `program` is the daemon's connection with its program.
  NodeSide(std::unique_ptr<ByteStream> connection, std::string runDirectory, const Greeting& greeting, ControlChannel program);
  // The same for a program in a virtual machine, with `place` in its memory. The destructor ends that place's session. A process that
  // connects to the socket `attachSocket` makes it reset the mailbox, and gets a byte when that is done.
  NodeSide(GuestPlace place, std::string runDirectory, const std::string& attachSocket);
  // The same for a session that arrives from another host with its virtual machine: `daemon` is the connection with the daemon, for which
  // this process is the program. The real program is asked when the machine is here.
  struct Program {
    std::string name, path;
    pid_t pid = 0;  // inside the machine
  };
  NodeSide(GuestPlace place, std::string runDirectory, const std::string& attachSocket, ControlChannel daemon, Program program);
  ~NodeSide() override;

  // Passes a connection of an existing session to the relay that has the session. Returns false if there is none.
  static bool passOn(int connection, const std::string& runDirectory, const Greeting& greeting);
  // Offers the relay that has the session a lane, over an additional connection. Null if the relay does not want one.
  static std::unique_ptr<Lane> offerLane(const std::string& runDirectory, const Greeting& greeting);

 private:
  // The socket in the run directory through which connections for the session arrive; with the suffix, lanes.
  static std::string socketOf(const std::string& runDirectory, const SessionToken& token);
  static constexpr const char* lanesSuffix = "-lanes";
  static MemoryFile adoptMemory(kj::AutoCloseFd& fd);

  void take(const LinkMessage& message) override;
  bool produce() override;
  void serveChannel(uint32_t channel) override;
  void serveWatched(int fd) override;
  std::unique_ptr<ByteStream> reconnect() override;
  bool canReconnect() const override { return !guest || isAttaching || isArriving || isStill; }
  // While a machine may be saved or moved, only indispensable data is written into its memory, because the machine might not get it.
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
  std::optional<GuestPlace> guest;     // set if the program is in a virtual machine
  std::unique_ptr<GuestStream> begun;  // its mailbox after a reset, until the machine follows
  bool isAttaching = false;
  bool isStill = false;                                   // the program is suspended, or about to move with its machine
  Program program;                                        // for a session that arrives with its machine: the program,
  kj::Array<capnp::word> reattachMessage, openedMessage;  // and the messages that it will be sent
  Clock::time_point begunAt{};
  kj::AutoCloseFd acceptor;     // for connections that replace the present one,
  kj::AutoCloseFd replacement;  // and the next such connection, greeted,
  Greeting latest{};            // the greeting of the latest connection
  uint32_t connections = 0;     // how many connections have replaced another one
  kj::AutoCloseFd laneAcceptor;  // for processes with an additional connection
  kj::AutoCloseFd reattach;     // for daemons, once there is a session
  kj::AutoCloseFd stateFolder;
  std::string stateDirectory;
  MemoryFile segmentFile, hostArenaFile;
  std::optional<Segment> segment;
  std::unique_ptr<WorkerMirror> mirror;
  kj::AutoCloseFd objects;  // the object list being received
  uint32_t lastChannel = 0;
  uint64_t accepted = 0;  // the number of the latest handover that the program has accepted
  bool isArriving = false;  // it comes from another host, and no worker here has it yet
  bool isHeld = false;    // the gate is closed: the program does not need a daemon
};

}  // namespace vgpu::relay
