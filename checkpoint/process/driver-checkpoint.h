// NVIDIA's checkpoint API (`cuCheckpointProcess*`, driver 570 or newer): the driver moves a process's GPU memory into the process's host
// memory, releases the GPUs, and moves it back later. For programs that run natively, without a session.
//
// open() loads this machine's driver into this process. Any thread; one call at a time per process.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

namespace vgpu::process {

enum class DriverState { running, locked, checkpointed, failed };

class DriverCheckpoint {
 public:
  // Throws kj::Exception that says what to do if there is no such driver, or it fails to initialize.
  static DriverCheckpoint open();

  // As returned by cuDriverGetVersion: 13000.
  int version() const { return driverVersion; }

  // Nothing if the process does not use the driver.
  std::optional<DriverState> stateOf(pid_t pid) const;

  // Waits for the process's GPU work, blocks its further driver calls, and moves the GPU's memory into the process. Throws kj::Exception
  // with the driver's reason; call letGo() then. `timeoutSeconds`: for driver calls in progress.
  void take(pid_t pid, unsigned timeoutSeconds) const;

  // Moves the GPU's memory of a running process back, if it was taken, and unblocks its calls. Throws kj::Exception with the driver's
  // reason.
  void letGo(pid_t pid) const;

 private:
  struct Entries;
  explicit DriverCheckpoint(const Entries* entries, int version) : entries(entries), driverVersion(version) {}
  void require(int result, const char* doing, pid_t pid) const;

  const Entries* entries;  // static data, which keeps the driver loaded
  int driverVersion;
};

// Those of the processes that use the driver. Throws kj::Exception if there is none, or if one is taken already.
std::vector<pid_t> usersOf(const DriverCheckpoint& driver, const std::vector<pid_t>& processes);

}  // namespace vgpu::process
