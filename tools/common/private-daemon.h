// A private daemon of one `vgpuctl run` (if no daemon runs) or of one vgpu-bench, in a run directory of its own. It ends with the process
// that started it.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "tools/common/node-address.h"

namespace vgpu {

// Removes the run directory of a private daemon that has ended, except the state of suspended sessions, because their programs still write
// their object lists there. Returns the paths that were left.
std::vector<std::string> removePrivateDirectory(const std::string& directory);

// Makes a new folder for such a daemon.
std::string makePrivateDirectory();
// Removes it as above; waits up to 2 s for sessions that are ending.
void awaitPrivateRemoval(const std::string& directory);

class PrivateDaemon {
 public:
  // Starts the daemon with further `options` of vgpud, and waits until it is ready. Throws kj::Exception if that fails; the daemon has
  // printed its reason to stderr then.
  explicit PrivateDaemon(const std::vector<std::string>& options = {});
  // Ends the daemon and removes its run directory, except the state of suspended sessions.
  ~PrivateDaemon();
  PrivateDaemon(const PrivateDaemon&) = delete;
  PrivateDaemon& operator=(const PrivateDaemon&) = delete;

  const NodeAddress& address() const { return node; }
  // The description in the daemon's ready message: "(emulated, 1 device: …)".
  const std::string& devices() const { return description; }

 private:
  void awaitReady(int output);
  void end();

  NodeAddress node;
  pid_t process = 0;
  std::string description;
};

}  // namespace vgpu
