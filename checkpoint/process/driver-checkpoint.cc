#include "checkpoint/process/driver-checkpoint.h"

#include <cuda.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include <bit>
#include <type_traits>

#include "checkpoint/process/process-tree.h"
#include "vgpu/base/fail.h"

namespace vgpu::process {
namespace {

constexpr const char* library = "libcuda.so.1";

const char* textOf(DriverState state) {
  switch (state) {
    case DriverState::running:
      return "running";
    case DriverState::locked:
      return "locked";
    case DriverState::checkpointed:
      return "checkpointed";
    case DriverState::failed:
      return "failed";
  }
  return "unknown";
}

}  // namespace

struct DriverCheckpoint::Entries {
  decltype(&cuInit) init;
  decltype(&cuDriverGetVersion) driverGetVersion;
  decltype(&cuGetErrorName) getErrorName;
  decltype(&cuCheckpointProcessGetState) getState;
  decltype(&cuCheckpointProcessLock) lock;
  decltype(&cuCheckpointProcessCheckpoint) checkpoint;
  decltype(&cuCheckpointProcessRestore) restore;
  decltype(&cuCheckpointProcessUnlock) unlock;
};

DriverCheckpoint DriverCheckpoint::open() {
  static Entries entries;
  void* driver = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (driver == nullptr)
    fail(fmt::format("there is no NVIDIA driver on this machine, and it is needed to save or resume a native program: {}", dlerror()));
  auto find = [&](auto& entry, const char* name) {
    entry = std::bit_cast<std::remove_reference_t<decltype(entry)>>(dlsym(driver, name));
    if (entry == nullptr)
      fail(fmt::format("the NVIDIA driver of this machine has no {}: saving a native program needs driver 570 or newer", name));
  };
  find(entries.init, "cuInit");
  find(entries.driverGetVersion, "cuDriverGetVersion");
  find(entries.getErrorName, "cuGetErrorName");
  find(entries.getState, "cuCheckpointProcessGetState");
  find(entries.lock, "cuCheckpointProcessLock");
  find(entries.checkpoint, "cuCheckpointProcessCheckpoint");
  find(entries.restore, "cuCheckpointProcessRestore");
  find(entries.unlock, "cuCheckpointProcessUnlock");
  int version = 0;
  DriverCheckpoint opened(&entries, 0);
  opened.require(entries.init(0), "start", 0);
  opened.require(entries.driverGetVersion(&version), "report its version", 0);
  opened.driverVersion = version;
  return opened;
}

void DriverCheckpoint::require(int result, const char* doing, pid_t pid) const {
  if (result == CUDA_SUCCESS) return;
  const char* name = nullptr;
  if (entries->getErrorName(static_cast<CUresult>(result), &name) != CUDA_SUCCESS) name = "an error without a name";
  fail(fmt::format("NVIDIA's driver cannot {}{}: {} ({})", doing, pid == 0 ? "" : " " + named(pid), name, result));
}

std::optional<DriverState> DriverCheckpoint::stateOf(pid_t pid) const {
  CUprocessState state;
  if (entries->getState(pid, &state) != CUDA_SUCCESS) return std::nullopt;
  switch (state) {
    case CU_PROCESS_STATE_RUNNING:
      return DriverState::running;
    case CU_PROCESS_STATE_LOCKED:
      return DriverState::locked;
    case CU_PROCESS_STATE_CHECKPOINTED:
      return DriverState::checkpointed;
    default:
      return DriverState::failed;
  }
}

void DriverCheckpoint::take(pid_t pid, unsigned timeoutSeconds) const {
  CUcheckpointLockArgs locking{};
  locking.timeoutMs = timeoutSeconds * 1000;
  require(entries->lock(pid, &locking), "hold the CUDA calls of", pid);
  CUcheckpointCheckpointArgs taking{};
  require(entries->checkpoint(pid, &taking), "save the GPU memory of", pid);
}

void DriverCheckpoint::letGo(pid_t pid) const {
  if (stateOf(pid) == DriverState::checkpointed) {
    CUcheckpointRestoreArgs giving{};
    require(entries->restore(pid, &giving), "restore the GPU memory of", pid);
  }
  if (stateOf(pid) == DriverState::locked) {
    CUcheckpointUnlockArgs unlocking{};
    require(entries->unlock(pid, &unlocking), "release the CUDA calls of", pid);
  }
}

std::vector<pid_t> usersOf(const DriverCheckpoint& driver, const std::vector<pid_t>& processes) {
  std::vector<pid_t> users;
  for (pid_t pid : processes) {
    auto state = driver.stateOf(pid);
    if (!state) continue;
    if (*state != DriverState::running)
      fail(
          fmt::format("NVIDIA's driver reports {} as {} already: another tool is saving it, or failed to. If a `vgpuctl suspend --native "
                      "--to DIRECTORY` was killed, `vgpuctl resume DIRECTORY` lets the program go on",
                      named(pid), textOf(*state)));
    users.push_back(pid);
  }
  if (users.empty())
    fail(fmt::format(
        "neither {} nor a child of it uses a GPU of this machine. If it runs on a virtual GPU, name its session, without --native",
        named(processes.front())));
  return users;
}

}  // namespace vgpu::process
