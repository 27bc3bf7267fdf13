// vgpuctl's commands. Each returns the exit code, and throws kj::Exception if it fails.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/common/node-address.h"
#include "vgpu/store/chunk-store.h"

namespace vgpu::ctl {

struct RunOptions {
  std::string name;   // of the session; empty: the program's file name
  unsigned gpus = 1;  // that the program needs
  std::vector<std::string> command;
};

// Runs a program on a virtual GPU of the node, or of a private daemon if no node is named and the default one does not answer.
// Returns the program's exit code, 128 + n if signal n killed it.
int runProgram(const NodeAddress& node, const RunOptions& options);

// What the known nodes (tools/common/known-nodes.h) have, each within so many seconds.
int listNodes(unsigned seconds, bool json);
// The best of them for a program that needs so many GPUs.
NodeAddress chooseNode(unsigned gpus);

int listSessions(const NodeAddress& node, bool json);
int listWorkers(const NodeAddress& node, bool json);
constexpr const char* inMemory = "memory";
struct SuspendOptions {
  std::string session;
  std::string directory;       // or "memory": the node's pinned memory. Empty: the user's store
  std::string name;            // of the snapshot in the store; empty: as the session is called here
  unsigned timeoutSeconds = 60;
  bool inBackground = false;   // to pinned memory first; the node writes it to the store afterwards
  bool withProcess = false;    // the program's process too, which ends, or goes on with the snapshot made
  bool isNative = false;       // no session, but a process id: of a program that runs on a GPU without vgpu. To a directory
  bool json = false;
};
int suspendSession(const NodeAddress& node, const SuspendOptions& options);
// As suspendSession, but the program goes on. Not to memory.
int snapshotSession(const NodeAddress& node, const SuspendOptions& options);
// Either of them with the program's process.
int saveWithProcess(const NodeAddress& node, const SuspendOptions& options, bool goesOn);
int suspendNative(const SuspendOptions& options);
struct MigrateOptions {
  std::string session;
  std::string target;               // the node, as --node takes it
  double downtimeMilliseconds = 100;
  unsigned timeoutSeconds = 60;
  bool json = false;
};
// To another node while its program runs.
int migrateSession(const NodeAddress& node, const MigrateOptions& options);
struct EvacuateOptions {
  std::string target;  // of all; empty: the known nodes
  double downtimeMilliseconds = 100;
  unsigned timeoutSeconds = 60;
  bool json = false;
};
// Moves all sessions that run on the node, the most idle first. Returns 1 if one stays.
int evacuateNode(const NodeAddress& node, const EvacuateOptions& options);
// A virtual machine that was saved goes on: its sessions' processes go on talking with it (docs/virtual-machines.md).
int attachGuest(const NodeAddress& node, const std::string& guest);
struct MachineOptions {
  std::string monitor;                // where QEMU listens for a QMP client: the path of a unix socket, or tcp:HOST:PORT
  std::string machine;                // its name there, if that is to be checked
  std::string guest;                  // as `vgpud --guest` calls it; empty: the only one, or as the monitor does
  std::vector<std::string> sessions;  // of its programs; empty: all of the node whose programs are elsewhere
  std::string target;  // follow: the node, as --node takes it; save, restore: the folder with the sessions' snapshots
  std::string uri;     // where the machine goes, or comes from, if not FOLDER/machine; follow: empty: somebody else begins
  double downtimeMilliseconds = 100;  // for which each session's program may be held
  unsigned timeoutSeconds = 60;
  bool stays = false;       // follow: also further migrations, after one that has failed
  bool isLibvirts = false;  // follow: libvirt begins what becomes of the machine, and is asked what that is
  std::string saves;        // of these: the folder for the sessions of machines that it saves; empty: none that has sessions is saved
  bool restores = false;    // of these: it restores the machine now, whose sessions are there
  bool json = false;
};
// A virtual machine migrates: the sessions of its programs go along (docs/virtual-machines.md). Returns 1 if it or one of them
// does not.
int followMachine(const NodeAddress& node, const MachineOptions& options);
// To disk: suspends the sessions, then saves the machine, and ends it. After a failure all goes on.
int saveMachine(const NodeAddress& node, const MachineOptions& options);
// Loads the machine, if its QEMU waits for that, and resumes them when it runs. What does not fit here is refused before that.
int restoreMachine(const NodeAddress& node, const MachineOptions& options);
// As libvirt calls its hook for QEMU: the machine's name, an operation, and what belongs to it.
int hookMachine(const std::vector<std::string>& words);
// What would refuse or delay a suspend. Returns 1 if it would be refused.
int explainSession(const NodeAddress& node, const std::string& session, bool json);
struct ResumeOptions {
  std::string snapshot;  // a directory, or, if it has no '/' and is no directory here, a name in the store
  std::string devices;   // "0=1,1=0", GPUs of the node by those of the program; empty: in their order
  bool awaits = false;   // a program whose process is restored: until it has ended; returns its exit code
  bool json = false;
};
int resumeSession(const NodeAddress& node, const ResumeOptions& options);
// Nothing if that directory has no native program.
std::optional<int> resumeNative(const std::string& directory, const ResumeOptions& options);
struct CloneOptions {
  std::string snapshot, devices;  // as of ResumeOptions
  unsigned count = 1;
};
// Starts copies of a snapshot with its processes. Returns 1 if one cannot be started; the others run.
int cloneSnapshot(const NodeAddress& node, const CloneOptions& options);

// Of the user's store. Throws kj::Exception if its index is damaged: by another process, before one that people rely on reads it.
void requireSoundStore(const std::string& folder);
int listSnapshots(bool json);
int removeSnapshot(const std::string& name, bool force);  // by force, also the latest of a session whose program is there
int verifySnapshots(const std::vector<std::string>& names);  // all of the store, if none is named; what has a / is a directory
int collectSnapshots(bool json);
// To a new file, or to standard output if that is "-".
int exportSnapshot(const std::string& name, const std::string& file);
// From a file, or from standard input; under the name of its session if `name` is empty.
int importSnapshot(const std::string& file, const std::string& name, bool json);

// keys init, issue, show: this process becomes vgpu-relay, which links OpenSSL.
int manageKeys(const std::vector<std::string>& words);

// `target` is a session (its object list is shown) or a snapshot's directory (its manifest is).
int inspect(const NodeAddress& node, const std::string& target, bool json);

}  // namespace vgpu::ctl
