// Starts a child process with the attributes that vgpud and vgpuctl need, and reports a failed exec as an error in the parent.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

namespace vgpu {

// The environment of this process.
std::vector<std::string> ownEnvironment();

struct SpawnRequest {
  std::string executable;                     // a path, or a name to look up in PATH
  std::vector<std::string> arguments;         // argv, including the name
  std::vector<std::string> environment = ownEnvironment();  // NAME=VALUE
  std::vector<std::pair<int, int>> inherits;  // descriptor here -> descriptor in the child; others keep their close-on-exec flag
  int deathSignal = 0;                        // sent to the child when the calling thread ends
  bool ownGroup = false;                      // in its own process group, so that the terminal's signals do not reach it
  bool ownSession = false;                    // leads a session (setsid), without a controlling terminal
  bool fixedAddresses = false;                // without address-space randomization
};

// The child starts with no signal blocked, and none ignored except those that rememberIgnoredSignals() recorded. Throws kj::Exception,
// saying why `executable` cannot be executed.
pid_t spawn(const SpawnRequest& request);

// Waits until a child has ended, and reaps it. Returns its status, as from waitpid().
int reapChild(pid_t child);

// Records the signals that the process ignores from its start (because of nohup, for example). Call it first in main(), before KJ or other
// code changes them.
void rememberIgnoredSignals();

// How a process ended, as a message: "exited with code 3", "was killed by signal 9 (Killed)".
std::string describeExit(int waitStatus);

}  // namespace vgpu
