// vgpuctl's commands. Each returns the exit code, and throws kj::Exception if it fails.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/common/node-address.h"
#include "vgpu/store/chunk-store.h"

namespace vgpu::ctl {

struct RunOptions {
  std::string name;   // for the session; empty: the program's file name
  unsigned gpus = 1;  // number that the program needs
  std::vector<std::string> command;
};

// Runs a program on a virtual GPU of the node, or of a private daemon if no node is named and the default node does not answer. Returns the
// program's exit code, 128 + n if signal n killed it.
int runProgram(const NodeAddress& node, const RunOptions& options);

// Lists what the known nodes (tools/common/known-nodes.h) have; waits at most so many seconds for each.
int listNodes(unsigned seconds, bool json);
// The best known node for a program that needs so many GPUs.
NodeAddress chooseNode(unsigned gpus);

int listSessions(const NodeAddress& node, bool json);
int listWorkers(const NodeAddress& node, bool json);
constexpr const char* inMemory = "memory";
struct SuspendOptions {
  std::string session;
  std::string directory;       // or "memory": the node's pinned memory. Empty: the user's store
  std::string name;            // of the snapshot in the store; empty: the session's name
  unsigned timeoutSeconds = 60;
  bool inBackground = false;   // to pinned memory first; the node writes the snapshot to the store afterwards
  bool withProcess = false;    // save the program's process too, which then ends, or goes on if the command is snapshot
  bool isNative = false;       // `session` is a process id, of a program that runs on a GPU without vgpu; only to a directory
  bool json = false;
};
int suspendSession(const NodeAddress& node, const SuspendOptions& options);
// Like suspendSession, but the program goes on. Not to memory.
int snapshotSession(const NodeAddress& node, const SuspendOptions& options);
// Either of them, including the program's process.
int saveWithProcess(const NodeAddress& node, const SuspendOptions& options, bool goesOn);
int suspendNative(const SuspendOptions& options);
struct MigrateOptions {
  std::string session;
  std::string target;               // the node, in the syntax of --node
  double downtimeMilliseconds = 100;
  unsigned timeoutSeconds = 60;
  bool json = false;
};
// Moves a session to another node while its program runs.
int migrateSession(const NodeAddress& node, const MigrateOptions& options);
struct EvacuateOptions {
  std::string target;  // for all sessions; empty: the known nodes
  double downtimeMilliseconds = 100;
  unsigned timeoutSeconds = 60;
  bool json = false;
};
// Moves all sessions that run on the node, the most idle first. Returns 1 if one of them stays.
int evacuateNode(const NodeAddress& node, const EvacuateOptions& options);
// A virtual machine was restored from saved memory: its sessions' processes reconnect to it (docs/virtual-machines.md).
int attachGuest(const NodeAddress& node, const std::string& guest);
struct MachineOptions {
  std::string monitor;                // address of QEMU's QMP monitor: the path of a unix socket, or tcp:HOST:PORT
  std::string machine;                // its name in QEMU, if that is to be checked
  std::string guest;                  // its name in `vgpud --guest`; empty: the only guest, or the one with the monitor's name
  std::vector<std::string> sessions;  // sessions of its programs; empty: all of the node whose programs are elsewhere
  std::string target;  // follow: the node, in the syntax of --node; save, restore: the folder with the sessions' snapshots
  std::string uri;     // destination or source of the machine, if not FOLDER/machine; follow: empty if somebody else starts the migration
  double downtimeMilliseconds = 100;  // how long each session's program may be held
  unsigned timeoutSeconds = 60;
  bool stays = false;       // follow: also follow further migrations after a failed one
  bool isLibvirts = false;  // follow: libvirt starts the operations on the machine, and is asked which one it is
  std::string saves;        // with isLibvirts: the folder for sessions of machines that libvirt saves; empty: refuses to save those
  bool restores = false;    // with isLibvirts: libvirt restores the machine now, and its sessions are in the folder
  bool json = false;
};
// A virtual machine migrates: moves the sessions of its programs along (docs/virtual-machines.md). Returns 1 if the machine or one of the
// sessions does not move.
int followMachine(const NodeAddress& node, const MachineOptions& options);
// To disk: suspends the sessions, then saves the machine and ends it. After a failure everything goes on.
int saveMachine(const NodeAddress& node, const MachineOptions& options);
// Loads the machine, if its QEMU waits for that, and resumes the sessions when it runs. Refuses, before loading, what this node cannot
// take.
int restoreMachine(const NodeAddress& node, const MachineOptions& options);
// Called with the arguments of libvirt's hook for QEMU: the machine's name, an operation, and the operation's arguments.
int hookMachine(const std::vector<std::string>& words);
// Prints what would refuse or delay a suspend. Returns 1 if it would be refused.
int explainSession(const NodeAddress& node, const std::string& session, bool json);
struct ResumeOptions {
  std::string snapshot;  // a directory, or, if it contains no '/' and is no directory here, a name in the store
  std::string devices;   // "0=1,1=0": the node's GPU for each of the program's; empty: in their order
  bool awaits = false;   // for a program whose process is restored: wait until it has ended, and return its exit code
  bool json = false;
};
int resumeSession(const NodeAddress& node, const ResumeOptions& options);
// Returns nothing if the directory contains no native program.
std::optional<int> resumeNative(const std::string& directory, const ResumeOptions& options);
struct CloneOptions {
  std::string snapshot, devices;  // as in ResumeOptions
  unsigned count = 1;
};
// Starts copies of a snapshot that has processes. Returns 1 if a copy cannot be started; the others run.
int cloneSnapshot(const NodeAddress& node, const CloneOptions& options);

// These commands use the user's store. Throws kj::Exception if its index is damaged: another process checks it, before a process on which
// people rely reads it.
void requireSoundStore(const std::string& folder);
int listSnapshots(bool json);
int removeSnapshot(const std::string& name, bool force);  // force: also the latest snapshot of a session whose program still waits
int verifySnapshots(const std::vector<std::string>& names);  // all of the store if none is named; a name with a '/' is a directory
int collectSnapshots(bool json);
// To a new file, or to standard output if that is "-".
int exportSnapshot(const std::string& name, const std::string& file);
// From a file, or from standard input; named like its session if `name` is empty.
int importSnapshot(const std::string& file, const std::string& name, bool json);

// keys init, issue, show: executes vgpu-relay in this process, because that links OpenSSL.
int manageKeys(const std::vector<std::string>& words);

// `target` is a session (prints its object list) or a snapshot's directory (prints its manifest).
int inspect(const NodeAddress& node, const std::string& target, bool json);

}  // namespace vgpu::ctl
