// A virtual machine's migration, as its monitor tells it, and the sessions of its programs. What `machine follow`, `save` and
// `restore` share.
//
// Of the main thread, whose event loop is the node client's.
#pragma once

#include <string>
#include <vector>

#include "tools/common/node-client.h"
#include "tools/vgpuctl/commands.h"
#include "tools/vgpuctl/machine-monitor.h"

namespace vgpu::ctl {

class Machine {
 public:
  // Throws kj::Exception if the monitor is none, or of another machine than options.machine, or one that migrates already. It may
  // be one that comes here.
  Machine(NodeClient& client, const MachineOptions& options);
  // QEMU hands over by itself again.
  ~Machine();
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  // Has QEMU say how its migrations go, and wait before the machine is handed over.
  void holdBeforeHandover();
  // The same if somebody else has undone it.
  void holdAgain();
  // What the machine's next step is, of which QEMU tells: "active", "pre-switchover", "completed", "failed", "cancelled", ...;
  // "stops" and "runs" of its processors, "ended" when its process has.
  kj::Promise<std::string> nextStep();
  // At pre-switchover: lets it go on, unless who set the capability does, or has.
  void handOver();
  // Whether it waits for its memory, or gets it.
  bool isIncoming();
  bool isMigrating();
  // Whether it waits for its memory, of which nobody has begun to send it any.
  static bool isEmpty(MachineMonitor& monitor);
  // While it migrates: keeps it from being handed over, however little is left to be sent, until hasten().
  void slow();
  void hasten();
  // Whether it may be handed over soon: slow() comes in time if this is asked every ten milliseconds.
  bool isNearlyThere();
  // Ends a migration, if there is one: the machine stays, unless the last of it went out meanwhile. As conclude().
  std::string cancel();
  // Waits until a migration has ended, and returns how: as nextStep().
  std::string conclude();
  // After a migration that leads nowhere: its processors go on here. Throws kj::Exception if QEMU has ended, or does not let it.
  void goOn();
  bool runs();
  // Why the last migration failed, for people.
  std::string reason();
  std::string status();

  MachineMonitor& monitor() { return qmp; }
  const std::string& name() const { return known; }

 private:
  bool isHeldBeforeHandover();
  // `isHeld`: it waits already, at somebody else's wish.
  void hold(bool isHeld);

  NodeClient& client;
  MachineMonitor qmp;
  std::string known;
  bool holds = false;         // by our wish
  nlohmann::json formerPace;  // while it is slow
  uint64_t wasLeft = 0;       // when isNearlyThere() was asked last
};

struct MachineSession {
  std::string id, name, program;
  int32_t pid = 0;
  // Of one that shares memory with the machine: its place there (GuestPlace of control.capnp).
  std::string guest;
  uint32_t slot = 0;
  uint64_t claim = 0, fileBytes = 0;

  bool sharesMemory() const { return !guest.empty(); }
};
// Those of options.sessions, or all that run on the node and whose programs are elsewhere; of sessions that share memory with a
// virtual machine, those of options.guest, or the only one, or the one that has the name `machine`. Throws kj::Exception if one
// is not there.
std::vector<MachineSession> sessionsOf(NodeClient& client, const MachineOptions& options, const std::string& machine);

// SIGINT and SIGTERM end a command by the event loop from here on: before there is one.
void takeSignals();
// Rejects when one comes.
kj::Promise<void> signalled(NodeClient& client);
// What `work` resolves to, if none comes before.
template <typename T>
kj::Promise<T> untilSignal(NodeClient& client, kj::Promise<T> work) {
  return work.exclusiveJoin(signalled(client).then([]() -> T { KJ_UNREACHABLE; }));
}

}  // namespace vgpu::ctl
