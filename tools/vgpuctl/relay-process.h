// The relay of one `vgpuctl run` whose node is elsewhere: it acts as the node towards the program (docs/remote.md). It ends with the
// process that started it; the separate process of a session lives as long as its program.
#pragma once

#include <sys/types.h>

#include <string>

#include "vgpu/control/endpoint.h"

namespace vgpu::ctl {

class RelayProcess {
 public:
  // Starts the relay, and waits until it listens. Throws kj::Exception if that fails.
  explicit RelayProcess(const Endpoint& node);
  // Ends the relay and removes its folder, except the state of programs that go on.
  ~RelayProcess();
  RelayProcess(const RelayProcess&) = delete;
  RelayProcess& operator=(const RelayProcess&) = delete;

  const std::string& runDirectory() const { return directory; }
  // In a virtual machine only the relay can ask its node: how many GPUs that has, and whether they run PTX.
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
