// resume: a session gets a node's GPU, and its program goes on. If the snapshot contains the program's process tree, the tree is restored
// first; its sessions go on together.
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>

#include "checkpoint/process/criu.h"
#include "checkpoint/process/survey.h"
#include "tools/common/node-client.h"
#include "tools/common/spawn.h"
#include "tools/vgpuctl/arguments.h"
#include "tools/vgpuctl/await-program.h"
#include "tools/vgpuctl/background.h"
#include "tools/vgpuctl/commands.h"
#include "tools/vgpuctl/node-resume.h"
#include "tools/vgpuctl/operation.h"
#include "tools/vgpuctl/program-tree.h"
#include "tools/vgpuctl/restore-guard.h"
#include "tools/vgpuctl/session-info.h"
#include "tools/vgpuctl/snapshot-info.h"
#include "vgpu/base/fail.h"
#include "vgpu/base/fault-point.h"
#include "vgpu/control/parked-program.h"
#include "vgpu/snapshot/process-part.h"

namespace vgpu::ctl {
namespace {

using snapshot::Header;
using snapshot::ProcessPart;

void requireNotThere(const NodeAddress& address, const std::vector<std::string>& sessions) {
  NodeClient client(address);
  auto answer = client.wait(client.node().listRequest().send());
  for (auto one : answer.getSessions())
    if (std::string session = one.getId(); std::ranges::find(sessions, session) != sessions.end())
      fail(fmt::format("session {} of this snapshot is on this node already ({}): its program is process {}", session,
                       stateName(one.getState()), one.getPid()));
}

// Checks everything that can be checked without a new process.
ProcessPart requireRestorable(const Resume& resume, const Header& header) {
  ProcessPart part = requireSound(resume, header);
  auto sessions = othersOf(part);
  sessions.push_back(header.identity.session);
  requireNotThere(resume.address, sessions);
  process::requireFreeIds(part);
  return part;
}

// This process becomes the program's parent, and returns the program's exit code. Calls `goesOn` when the program is continued.
int restoreAndAwait(const Resume& resume, const process::Criu& criu, const ProcessPart& part, const Detach& goesOn) {
  ParentSignals signals;
  criu.restore(snapshot::processFolderOf(resume.directory), part);
  std::optional<RestoreGuard> guard(processesOf(part));
  faultPoint("process.restored");
  KJ_IF_MAYBE (failure, kj::runCatchingExceptions([&] { resumeInNode(resume, othersOf(part)); })) {
    endProcesses(processesOf(part));
    reapChild(part.pid);
    kj::throwFatalException(kj::mv(*failure));
  }
  continueProcesses(processesOf(part), part.stopped);
  guard.reset();
  goesOn();
  return signals.await(part.pid, part.processes.front().name);
}

// The processes of a snapshot that still exist, because the command that saved them was killed: they are continued instead of restored.
// Empty if one of them has ended since.
std::vector<pid_t> waitingFor(const std::string& directory, const Header& header) {
  if (!ParkedProgram::find(header.identity.pid, header.identity.session)) return {};
  if (!header.process) return process::treeOf(process::rootOf(header.identity.pid));
  auto processes = processesOf(snapshot::readProcessPart(directory, *header.process));
  if (std::ranges::any_of(processes, process::hasEnded)) return {};
  return processes;
}

}  // namespace

int resumeSession(const NodeAddress& address, const ResumeOptions& options) {
  const std::string directory = sourceOf(options.snapshot);
  if (auto code = resumeNative(directory, options)) return *code;
  auto map = parseDeviceMap(options.devices);
  Resume resume{address, directory, {map.begin(), map.end()}, options.json};
  auto header = headerOf(resume.directory);  // if there is none, the daemon reports why
  auto waiting = header ? waitingFor(resume.directory, *header) : std::vector<pid_t>();
  if (!header || !header->process || !waiting.empty()) {
    if (options.awaits) fail("--wait is for a snapshot with the program's process: this program still runs, as a child of another process");
    resumeInNode(resume, snapshot::sessionsIn(resume.directory));
    continueProcesses(waiting, {});
    return 0;
  }
  auto criu = process::Criu::find();
  ProcessPart part = requireRestorable(resume, *header);
  auto restore = [&](const Detach& goesOn) { return restoreAndAwait(resume, criu, part, goesOn); };
  return options.awaits ? restore([] {}) : BackgroundWork(restore).await();
}

}  // namespace vgpu::ctl
