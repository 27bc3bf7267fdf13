// Starts a child process, with the attributes that vgpud and vgpuctl need, and reports a failed exec as an error here.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

namespace vgpu {

// This process's.
std::vector<std::string> ownEnvironment();

struct SpawnRequest {
  std::string executable;                     // a path, or a name to be found in PATH
  std::vector<std::string> arguments;         // argv, the name included
  std::vector<std::string> environment = ownEnvironment();  // NAME=VALUE
  std::vector<std::pair<int, int>> inherits;  // descriptor here -> descriptor there; others keep their close-on-exec flag
  int deathSignal = 0;                        // sent to the child when the calling thread ends
  bool ownGroup = false;                      // a process group of its own: the terminal's signals do not reach it
  bool ownSession = false;                    // leads a session (setsid), without a controlling terminal
  bool fixedAddresses = false;                // without address-space randomization
};

// The child starts with no signal blocked, and none ignored but those that rememberIgnoredSignals() found.
// Throws kj::Exception, saying why `executable` cannot be executed.
pid_t spawn(const SpawnRequest& request);

// Waits until a child has ended, and reaps it. Its status, as waitpid() gives it.
int reapChild(pid_t child);

// Records the signals that the process ignores from its start (because of nohup, for example). To be called first in main(),
// before KJ or other code changes them.
void rememberIgnoredSignals();

// How a process ended, for a person: "exited with code 3", "was killed by signal 9 (Killed)".
std::string describeExit(int waitStatus);

}  // namespace vgpu
