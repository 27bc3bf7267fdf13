// The relay of one `vgpuctl run` whose node is elsewhere: to the program it is the node (docs/remote.md). Ended with the process
// that started it; a session's own process goes on as long as its program.
#pragma once

#include <sys/types.h>

#include <string>

#include "vgpu/control/endpoint.h"

namespace vgpu::ctl {

class RelayProcess {
 public:
  // Starts it, and waits until it listens. Throws kj::Exception if that fails.
  explicit RelayProcess(const Endpoint& node);
  // Ends it and removes its folder, except the state of programs that go on.
  ~RelayProcess();
  RelayProcess(const RelayProcess&) = delete;
  RelayProcess& operator=(const RelayProcess&) = delete;

  const std::string& runDirectory() const { return directory; }
  // Of a node that only the relay can ask, because this is a virtual machine of its: how many GPUs it has, and whether they run
  // PTX.
  size_t gpus() const { return gpuCount; }
  bool runsPtx() const { return isPtx; }

 private:
  bool readLine(int output);

  std::string directory;
  pid_t process = 0;
  size_t gpuCount = 0;
  bool isPtx = false;
};

}  // namespace vgpu::ctl
