// NVIDIA's checkpoint API (`cuCheckpointProcess*`, driver 570 or newer): the driver takes what a process has on its GPUs into the
// process's host memory and lets go of them, and gives it back. It is for programs that run natively, without a session.
//
// The driver of this machine is loaded into this process at open(). Any thread; one at a time for a process.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

namespace vgpu::process {

enum class DriverState { running, locked, checkpointed, failed };

class DriverCheckpoint {
 public:
  // Throws kj::Exception that says what to do if there is no such driver, or it does not start.
  static DriverCheckpoint open();

  // As cuDriverGetVersion says it: 13000.
  int version() const { return driverVersion; }

  // Nothing: the process does not use the driver.
  std::optional<DriverState> stateOf(pid_t pid) const;

  // Lets the process finish what it has asked of the GPU, keeps its further calls waiting, and takes the GPU's memory into the
  // process. Throws kj::Exception with the driver's reason; letGo() then. `timeoutSeconds`: for its calls that are under way.
  void take(pid_t pid, unsigned timeoutSeconds) const;

  // Gives a process that runs its GPU's memory again, if it was taken, and lets its calls go on. Throws kj::Exception with the
  // driver's reason.
  void letGo(pid_t pid) const;

 private:
  struct Entries;
  explicit DriverCheckpoint(const Entries* entries, int version) : entries(entries), driverVersion(version) {}
  void require(int result, const char* doing, pid_t pid) const;

  const Entries* entries;  // of the process, which keeps the driver loaded
  int driverVersion;
};

// Those of the processes that use the driver. Throws kj::Exception if there is none, or one is taken already.
std::vector<pid_t> usersOf(const DriverCheckpoint& driver, const std::vector<pid_t>& processes);

}  // namespace vgpu::process
