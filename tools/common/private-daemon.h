// A daemon of one `vgpuctl run`, for people who have none running, or of one vgpu-bench: in a run directory of its own,
// and ended with us.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "tools/common/node-address.h"

namespace vgpu {

// Removes the run directory of a private daemon that has ended. Where sessions of it are suspended it is left as it is,
// because their programs go on writing their object lists there: the paths of these.
std::vector<std::string> removePrivateDirectory(const std::string& directory);

class PrivateDaemon {
 public:
  // Starts it, with `options` of vgpud's besides, and waits until it is ready. Throws kj::Exception if that cannot
  // be; the daemon's own words about it are on stderr by then.
  explicit PrivateDaemon(const std::vector<std::string>& options = {});
  // Ends it and removes its run directory, but for the state of sessions that are suspended.
  ~PrivateDaemon();
  PrivateDaemon(const PrivateDaemon&) = delete;
  PrivateDaemon& operator=(const PrivateDaemon&) = delete;

  const NodeAddress& address() const { return node; }
  // What the daemon said when it was ready: "(emulated, 1 device: …)".
  const std::string& devices() const { return description; }

 private:
  void awaitReady(int output);
  void end();

  NodeAddress node;
  pid_t process = 0;
  std::string description;
};

}  // namespace vgpu
