// A virtual machine's migration, through its monitor, and the sessions of its programs. Shared by `machine follow`, `save` and `restore`.
//
// Used by the main thread, whose event loop is the node client's.
#pragma once

#include <string>
#include <vector>

#include "tools/common/node-client.h"
#include "tools/vgpuctl/commands.h"
#include "tools/vgpuctl/machine-monitor.h"

namespace vgpu::ctl {

class Machine {
 public:
  // Throws kj::Exception if the monitor is not usable, or belongs to a machine other than options.machine, or to one that migrates already.
  // The machine may be an incoming one.
  Machine(NodeClient& client, const MachineOptions& options);
  // Lets QEMU hand over without waiting again.
  ~Machine();
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  // Makes QEMU report the progress of its migrations, and wait before the machine is handed over.
  void holdBeforeHandover();
  // The same, if somebody else has reset these settings.
  void holdAgain();
  // The next event of the machine: a migration status ("active", "pre-switchover", "completed", "failed", "cancelled", ...), "stops" or
  // "runs" for its processors, "ended" when its process has ended.
  kj::Promise<std::string> nextStep();
  // At pre-switchover: continues the migration, unless the client that set the capability does, or has done so.
  void handOver();
  // Whether it waits for its memory, or is receiving it.
  bool isIncoming();
  bool isMigrating();
  // Whether it waits for its memory, and nobody has begun to send it.
  static bool isEmpty(MachineMonitor& monitor);
  // While it migrates: prevents the handover, however little is left to be sent, until hasten().
  void slow();
  void hasten();
  // Whether it may be handed over soon: if this is called every ten milliseconds, slow() comes in time.
  bool isNearlyThere();
  // Cancels a migration, if there is one: the machine stays, unless its last part was sent meanwhile. Returns as conclude().
  std::string cancel();
  // Waits until a migration has ended, and returns how: a status as from nextStep().
  std::string conclude();
  // After a failed migration: continues its processors here. Throws kj::Exception if QEMU has ended, or refuses.
  void goOn();
  bool runs();
  // Why the last migration failed, as a message.
  std::string reason();
  std::string status();

  MachineMonitor& monitor() { return qmp; }
  const std::string& name() const { return known; }

 private:
  bool isHeldBeforeHandover();
  // `isHeld`: it is already set to wait, by somebody else.
  void hold(bool isHeld);

  NodeClient& client;
  MachineMonitor qmp;
  std::string known;
  bool holds = false;         // we have set it to wait
  nlohmann::json formerPace;  // while it is slowed down
  uint64_t wasLeft = 0;       // at the last call of isNearlyThere()
};

struct MachineSession {
  std::string id, name, program;
  int32_t pid = 0;
  // For a session that shares memory with the machine: its place there (GuestPlace of control.capnp).
  std::string guest;
  uint32_t slot = 0;
  uint64_t claim = 0, fileBytes = 0;

  bool sharesMemory() const { return !guest.empty(); }
};
// The sessions in options.sessions, or all that run on the node and whose programs are elsewhere; of sessions that share memory with a
// virtual machine, those of options.guest, or of the only guest, or of the guest named `machine`. Throws kj::Exception if a named session
// does not exist.
std::vector<MachineSession> sessionsOf(NodeClient& client, const MachineOptions& options, const std::string& machine);

// From here on, SIGINT and SIGTERM are delivered through the event loop. Call it before the loop exists.
void takeSignals();
// Rejects when such a signal arrives.
kj::Promise<void> signalled(NodeClient& client);
// The result of `work`, unless a signal arrives before.
template <typename T>
kj::Promise<T> untilSignal(NodeClient& client, kj::Promise<T> work) {
  return work.exclusiveJoin(signalled(client).then([]() -> T { KJ_UNREACHABLE; }));
}

}  // namespace vgpu::ctl
