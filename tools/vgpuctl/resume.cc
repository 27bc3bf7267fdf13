// resume: a session gets a GPU of a node, and its program goes on. If the snapshot has the program's process, that is restored
// first.
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

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
#include "tools/vgpuctl/progress-line.h"
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

// The program waits for it.
void resumeInNode(const Resume& resume) {
  NodeClient client(resume.address);
  auto request = client.node().resumeRequest();
  request.setDirectory(reader(resume.directory));
  request.setDevices(kj::arrayPtr(resume.devices.data(), resume.devices.size()));
  request.setProgress(kj::heap<ProgressLine>("resume"));
  auto sent = request.send();
  faultPoint("resume.asked");
  auto answer = client.wait(kj::mv(sent));
  auto session = answer.getSession();
  if (resume.options.json) {
    json result = reportJson(answer.getReport());
    result["session"] = sessionJson(session);
    printJson(result);
  } else {
    fmt::print("{} ({}, pid {}) runs again on {}: {}\n", session.getId().cStr(), printable(session.getName().cStr()),
               session.getPid(), session.getDevice().cStr(), summary(answer.getReport()));
  }
}

void requireNotThere(const NodeAddress& address, const std::string& session) {
  NodeClient client(address);
  auto answer = client.wait(client.node().listRequest().send());
  for (auto one : answer.getSessions())
    if (session == one.getId().cStr())
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
  process::requireSameFiles(part);
  requireNotThere(resume.address, header.identity.session);
  process::requireFreeIds(part);
  return part;
}

// This process becomes the program's parent, and returns the program's exit code. `goesOn` is called when the program does.
int restoreAndAwait(const Resume& resume, const process::Criu& criu, const ProcessPart& part, const std::string& program,
                    const std::function<void()>& goesOn) {
  ParentSignals signals;
  criu.restore(snapshot::processFolderOf(resume.directory), part);
  faultPoint("process.restored");
  KJ_IF_MAYBE (failure, kj::runCatchingExceptions([&] { resumeInNode(resume); })) {
    kill(part.pid, SIGKILL);
    while (waitpid(part.pid, nullptr, 0) < 0 && errno == EINTR) {
    }
    kj::throwFatalException(kj::mv(*failure));
  }
  goesOn();
  return signals.await(part.pid, program);
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
  // A process that was not ended, because whoever saved it was killed, goes on as it is.
  if (!header || !header->process || ParkedProgram::find(header->identity.pid, header->identity.session)) {
    if (options.awaits) fail("--wait is for a snapshot with the program's process: this program's parent is another process");
    resumeInNode(resume);
    return 0;
  }
  auto criu = process::Criu::find();
  ProcessPart part = requireRestorable(resume, *header);
  auto restore = [&](const std::function<void()>& goesOn) {
    return restoreAndAwait(resume, criu, part, header->identity.name, goesOn);
  };
  return options.awaits ? restore([] {}) : inBackground(restore);
}

}  // namespace vgpu::ctl
