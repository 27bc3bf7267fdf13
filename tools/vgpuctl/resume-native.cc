// resume of a native program's snapshot (save-native.cc): CRIU restores the processes, and NVIDIA's driver restores their GPU memory. If
// either fails, none of the processes is left, and the snapshot is unchanged. Processes that a killed save still holds are continued
// instead.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "checkpoint/process/criu.h"
#include "checkpoint/process/driver-checkpoint.h"
#include "checkpoint/process/survey.h"
#include "tools/common/spawn.h"
#include "tools/vgpuctl/await-program.h"
#include "tools/vgpuctl/background.h"
#include "tools/vgpuctl/commands.h"
#include "tools/vgpuctl/native-held.h"
#include "tools/vgpuctl/native-list.h"
#include "tools/vgpuctl/program-tree.h"
#include "tools/vgpuctl/progress-line.h"
#include "tools/vgpuctl/restore-guard.h"
#include "tools/vgpuctl/session-info.h"
#include "vgpu/base/fail.h"

namespace vgpu::ctl {
namespace {

using snapshot::ProcessPart;

ProcessPart requireRestorable(const std::string& directory, const NativeList& list) {
  ProcessPart part = snapshot::readProcessPart(directory, list.process);
  {
    DoneLine progress("verify the process", list.process.imageBytes);
    snapshot::verifyImages(directory, part, [&](uint64_t bytes) { progress.add(bytes); });
  }
  process::requireSameFiles(part);
  process::requireFreeIds(part);
  return part;
}

// The processes run while the driver restores them, because it works in a thread of theirs. Their driver calls wait until it has finished.
int restoreAndAwait(const std::string& directory, const NativeList& list, const process::Criu& criu, const ProcessPart& part,
                    bool asJson, const Detach& goesOn) {
  auto driver = process::DriverCheckpoint::open();  // opened in this process, because a driver cannot be used across fork
  ParentSignals signals;
  criu.restore(snapshot::processFolderOf(directory), part);
  std::optional<RestoreGuard> guard(processesOf(part));
  continueProcesses(processesOf(part), part.stopped);
  KJ_IF_MAYBE (failure, kj::runCatchingExceptions([&] {
                 for (int user : list.users) driver.letGo(user);
               })) {
    endProcesses(processesOf(part));
    reapChild(part.pid);
    kj::throwFatalException(kj::mv(*failure));
  }
  guard.reset();
  if (asJson)
    printJson({{"pid", part.pid}, {"processes", part.processes.size()}, {"users", list.users}});
  else
    fmt::print("process {} ({}) runs again on GPUs of this machine\n", part.pid, part.processes.front().name);
  goesOn();
  return signals.await(part.pid, part.processes.front().name);
}

}  // namespace

std::optional<int> resumeNative(const std::string& directory, const ResumeOptions& options) {
  if (putRightNative(directory)) return 0;
  auto list = readNativeList(directory);
  if (!list) return std::nullopt;
  if (!options.devices.empty()) fail("--device-map is for sessions: NVIDIA's driver chooses the GPUs of a native program");
  auto criu = process::Criu::find();
  ProcessPart part = requireRestorable(directory, *list);
  auto restore = [&](const Detach& goesOn) { return restoreAndAwait(directory, *list, criu, part, options.json, goesOn); };
  return options.awaits ? restore([] {}) : BackgroundWork(restore).await();
}

}  // namespace vgpu::ctl
