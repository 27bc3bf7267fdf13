// resume: a session gets a GPU of a node, and its program goes on. If the snapshot has the program's tree of processes, that is
// restored first; its sessions go on together.
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>

#include "checkpoint/process/criu.h"
#include "checkpoint/process/survey.h"
#include "tools/common/node-client.h"
#include "tools/common/printable.h"
#include "tools/common/reason.h"
#include "tools/vgpuctl/arguments.h"
#include "tools/vgpuctl/await-program.h"
#include "tools/vgpuctl/commands.h"
#include "tools/vgpuctl/operation.h"
#include "tools/vgpuctl/program-tree.h"
#include "tools/vgpuctl/progress-line.h"
#include "tools/vgpuctl/restore-guard.h"
#include "tools/vgpuctl/session-info.h"
#include "tools/vgpuctl/snapshot-info.h"
#include "vgpu/base/fail.h"
#include "vgpu/base/fault-point.h"
#include "vgpu/control/parked-program.h"
#include "vgpu/control/text.h"
#include "vgpu/snapshot/process-part.h"

namespace vgpu::ctl {
namespace {

using nlohmann::json;
using snapshot::Header;
using snapshot::ProcessPart;

struct Resume {
  const NodeAddress& address;
  const ResumeOptions& options;
  std::string directory;
  std::vector<uint32_t> devices;
};

void print(control::SessionInfo::Reader session, const std::string& how) {
  fmt::print("{} ({}, pid {}) runs again on {}{}\n", session.getId().cStr(), printable(session.getName().cStr()),
             session.getPid(), session.getDevice().cStr(), how);
}

// The programs wait for it: of the snapshot, and of the other sessions of its tree.
void resumeInNode(const Resume& resume, const std::vector<std::string>& others) {
  NodeClient client(resume.address);
  auto request = client.node().resumeRequest();
  request.setDirectory(reader(resume.directory));
  request.setDevices(kj::arrayPtr(resume.devices.data(), resume.devices.size()));
  request.setProgress(kj::heap<ProgressLine>("resume"));
  auto list = request.initOthers(static_cast<unsigned>(others.size()));
  for (unsigned i = 0; i < others.size(); ++i) list.set(i, reader(snapshot::sessionFolderOf(resume.directory, others[i])));
  auto sent = request.send();
  faultPoint("resume.asked");
  auto answer = client.wait(kj::mv(sent));
  if (resume.options.json) {
    json result = reportJson(answer.getReport()), more = json::array();
    for (auto other : answer.getOthers()) more.push_back(sessionJson(other));
    result["session"] = sessionJson(answer.getSession());
    result["others"] = more;
    printJson(result);
  } else {
    print(answer.getSession(), ": " + summary(answer.getReport()));
    for (auto other : answer.getOthers()) print(other, "");
  }
}

std::vector<std::string> othersOf(const ProcessPart& part) {
  std::vector<std::string> others;
  for (auto& one : part.sessions) others.push_back(one.session);
  return others;
}

void requireNotThere(const NodeAddress& address, const std::vector<std::string>& sessions) {
  NodeClient client(address);
  auto answer = client.wait(client.node().listRequest().send());
  for (auto one : answer.getSessions())
    if (std::string session = one.getId(); std::ranges::find(sessions, session) != sessions.end())
      fail(fmt::format("session {} of this snapshot is on this node already, {}: its program is process {}", session,
                       stateName(one.getState()), one.getPid()));
}

// What can be found out without a new process.
ProcessPart requireRestorable(const Resume& resume, const Header& header) {
  if (resume.address.remote) fail("a process is restored on its node's machine: name the node by its unix socket");
  ProcessPart part = snapshot::readProcessPart(resume.directory, *header.process);
  {
    DoneLine progress("verify the process", header.process->imageBytes);
    snapshot::verifyImages(resume.directory, part, [&](uint64_t bytes) { progress.add(bytes); });
  }
  snapshot::verifySessions(resume.directory, part);
  process::requireSameFiles(part);
  auto sessions = othersOf(part);
  sessions.push_back(header.identity.session);
  requireNotThere(resume.address, sessions);
  process::requireFreeIds(part);
  return part;
}

// This process becomes the program's parent, and returns the program's exit code. `goesOn` is called when the program does.
int restoreAndAwait(const Resume& resume, const process::Criu& criu, const ProcessPart& part,
                    const std::function<void()>& goesOn) {
  ParentSignals signals;
  criu.restore(snapshot::processFolderOf(resume.directory), part);
  std::optional<RestoreGuard> guard(processesOf(part));
  faultPoint("process.restored");
  KJ_IF_MAYBE (failure, kj::runCatchingExceptions([&] { resumeInNode(resume, othersOf(part)); })) {
    endProcesses(processesOf(part));
    while (waitpid(part.pid, nullptr, 0) < 0 && errno == EINTR) {
    }
    kj::throwFatalException(kj::mv(*failure));
  }
  continueProcesses(processesOf(part), part.stopped);
  guard.reset();
  goesOn();
  return signals.await(part.pid, part.processes.front().name);
}

// The processes of a snapshot that were not ended, because whoever saved them was killed: they go on as they are. None if one of
// them has ended since.
std::vector<pid_t> waitingFor(const std::string& directory, const Header& header) {
  if (!ParkedProgram::find(header.identity.pid, header.identity.session)) return {};
  if (!header.process) return process::treeOf(process::rootOf(header.identity.pid));
  auto processes = processesOf(snapshot::readProcessPart(directory, *header.process));
  if (std::ranges::any_of(processes, process::hasEnded)) return {};
  return processes;
}

void closeStandardStreams() {
  int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int stream = STDIN_FILENO; stream <= STDERR_FILENO; ++stream) dup2(nothing, stream);
  close(nothing);
}

// Does `body` in a child, which stays as the program's parent; returns when that calls what it is given, else with its exit code.
int inBackground(const std::function<int(const std::function<void()>&)>& body) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) fail(fmt::format("no pipe can be made: {}", strerror(errno)));
  kj::AutoCloseFd input(ends[0]), output(ends[1]);
  std::fflush(nullptr);
  pid_t child = fork();
  if (child < 0) fail(fmt::format("no new process can be started: {}", strerror(errno)));
  if (child == 0) {
    input = nullptr;
    auto detach = [&] {
      std::fflush(nullptr);
      closeStandardStreams();
      char done = 0;
      [[maybe_unused]] ssize_t written = write(output, &done, 1);
      output = nullptr;
    };
    int code = exitCodeOf("vgpuctl", [&] { return body(detach); });
    std::fflush(nullptr);
    _exit(code);
  }
  output = nullptr;
  char done;
  if (read(input, &done, 1) == 1) return 0;
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

int resumeSession(const NodeAddress& address, const ResumeOptions& options) {
  auto map = parseDeviceMap(options.devices);
  Resume resume{address, options, sourceOf(options.snapshot), {map.begin(), map.end()}};
  auto header = headerOf(resume.directory);  // if there is none, the daemon says why
  auto waiting = header ? waitingFor(resume.directory, *header) : std::vector<pid_t>();
  if (!header || !header->process || !waiting.empty()) {
    if (options.awaits) fail("--wait is for a snapshot with the program's process: this program's parent is another process");
    resumeInNode(resume, snapshot::sessionsIn(resume.directory));
    continueProcesses(waiting, {});
    return 0;
  }
  auto criu = process::Criu::find();
  ProcessPart part = requireRestorable(resume, *header);
  auto restore = [&](const std::function<void()>& goesOn) { return restoreAndAwait(resume, criu, part, goesOn); };
  return options.awaits ? restore([] {}) : inBackground(restore);
}

}  // namespace vgpu::ctl
