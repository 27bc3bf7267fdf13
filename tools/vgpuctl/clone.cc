// clone: copies the processes and sessions of a snapshot; the copies run beside each other and beside the saved program. Each copy has
// process ids in its own namespace, and sessions with ids of their own.
//
//   vgpuctl ── a child for each copy, outside of the namespace, which talks to the node
//              └── the first process of the namespace: restores the copy, is its parent, and reaps orphans
//                  └── the copy
#include <fcntl.h>
#include <fmt/format.h>
#include <kj/debug.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "checkpoint/process/criu.h"
#include "checkpoint/process/own-ids.h"
#include "tools/common/copyable.h"
#include "tools/common/reason.h"
#include "tools/common/spawn.h"
#include "tools/vgpuctl/arguments.h"
#include "tools/vgpuctl/await-program.h"
#include "tools/vgpuctl/background.h"
#include "tools/vgpuctl/commands.h"
#include "tools/vgpuctl/node-resume.h"
#include "tools/vgpuctl/operation.h"
#include "tools/vgpuctl/program-tree.h"
#include "vgpu/base/fail.h"
#include "vgpu/base/fault-point.h"

namespace vgpu::ctl {
namespace {

using snapshot::Header;
using snapshot::ProcessPart;

// Passes one byte from one process to another, which also notices if the first one ends.
class Signal {
 public:
  Signal() {
    int ends[2];
    KJ_SYSCALL(pipe2(ends, O_CLOEXEC));
    input = kj::AutoCloseFd(ends[0]);
    output = kj::AutoCloseFd(ends[1]);
  }
  void send() {
    const char byte = 0;
    [[maybe_unused]] ssize_t written = write(output, &byte, 1);  // a process that has ended needs none
  }
  // Returns false if the other process has ended before.
  bool await() {
    output = nullptr;
    char byte;
    ssize_t count;
    while ((count = read(input, &byte, 1)) < 0 && errno == EINTR) {
    }
    return count == 1;
  }
  void sends() { input = nullptr; }

 private:
  kj::AutoCloseFd input, output;
};

class Copy {
 public:
  Copy(const Resume& resume, const process::Criu& criu, const Header& header, const ProcessPart& part)
      : resume(resume), criu(criu), header(header), part(part) {}

  // Returns the exit code of the copy's root.
  int run(const Detach& detach) {
    first = process::forkWithOwnIds(part, [this] { return exitCodeOf("vgpuctl", [this] { return runInside(); }); });
    goesOn.sends();
    if (!restored.await()) return awaitFirst();
    faultPoint("process.cloned");
    KJ_IF_MAYBE (failure, kj::runCatchingExceptions([this] { goOn(); })) {
      kill(first, SIGKILL);
      awaitFirst();
      kj::throwFatalException(kj::mv(*failure));
    }
    goesOn.send();
    detach();
    return signals.await(first, part.processes.front().name);
  }

 private:
  int runInside() {
    restored.sends();
    criu.restore(snapshot::processFolderOf(resume.directory), part);
    restored.send();
    if (!goesOn.await()) return 1;
    closeStandardStreams();
    return signals.await(part.pid, part.processes.front().name);
  }

  void goOn() {
    const auto ids = process::idsHere(first);
    auto here = [&](int id) {
      auto found = ids.find(id);
      if (found == ids.end()) fail(fmt::format("process {} of the copy has ended", id));
      return found->second;
    };
    std::vector<pid_t> programs{here(header.identity.pid)}, others;
    for (auto& session : part.sessions) programs.push_back(here(session.pid));
    resumeInNode(resume, othersOf(part), programs);
    for (auto& process : part.processes)
      if (std::ranges::find(part.stopped, process.pid) == part.stopped.end()) others.push_back(here(process.pid));
    continueProcesses(others, {});
  }

  int awaitFirst() const {
    const int status = reapChild(first);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

  const Resume& resume;
  const process::Criu& criu;
  const Header& header;
  const ProcessPart& part;
  ParentSignals signals;
  Signal restored, goesOn;
  pid_t first = 0;  // first process of the namespace
};

}  // namespace

int cloneSnapshot(const NodeAddress& address, const CloneOptions& options) {
  auto map = parseDeviceMap(options.devices);
  Resume resume{address, sourceOf(options.snapshot), {map.begin(), map.end()}};
  Header header = snapshot::readHeader(snapshot::SnapshotReader(resume.directory));
  if (!header.process)
    fail(fmt::format("the snapshot {} does not contain the program's process, which a copy needs: make a snapshot with `vgpuctl snapshot "
                     "SESSION --process`",
                     resume.directory));
  auto criu = process::Criu::find();
  ProcessPart part = requireSound(resume, header);
  requireCopyable(header.identity);
  for (auto& session : part.sessions)
    requireCopyable(
        snapshot::readHeader(snapshot::SnapshotReader(snapshot::sessionFolderOf(resume.directory, session.session))).identity);
  std::vector<BackgroundWork> copies;
  for (unsigned i = 0; i < options.count; ++i)
    copies.emplace_back([&](const Detach& detach) { return Copy(resume, criu, header, part).run(detach); });
  int code = 0;
  for (auto& copy : copies) code = std::max(code, copy.await());
  return code;
}

}  // namespace vgpu::ctl
