// suspend --process and snapshot --process: the session is suspended, its program lets go of the node, CRIU saves the process,
// and the snapshot's manifest names that. What happens to the process depends on nothing but that last step: before it, any error
// has the program go on from the snapshot, which is removed then; after it the process is ended, or goes on.
#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "checkpoint/process/criu.h"
#include "checkpoint/process/survey.h"
#include "tools/common/node-client.h"
#include "tools/common/printable.h"
#include "tools/common/reason.h"
#include "tools/common/session-lookup.h"
#include "tools/vgpuctl/await-program.h"
#include "tools/vgpuctl/commands.h"
#include "tools/vgpuctl/interruption.h"
#include "tools/vgpuctl/operation.h"
#include "tools/vgpuctl/progress-line.h"
#include "tools/vgpuctl/session-info.h"
#include "vgpu/base/fail.h"
#include "vgpu/base/fault-point.h"
#include "vgpu/control/parked-program.h"
#include "vgpu/control/text.h"
#include "vgpu/snapshot/process-part.h"

namespace vgpu::ctl {
namespace {

namespace fs = std::filesystem;
using snapshot::ProcessPart;

// The session that is meant, by its id from here on.
struct Found {
  std::string id, program;
  pid_t pid = 0;
};

Found find(NodeClient& client, const std::string& session) {
  auto answer = client.wait(client.node().listRequest().send());
  std::vector<SessionKey> keys;
  for (auto one : answer.getSessions()) keys.push_back({one.getId(), one.getName(), one.getPid()});
  auto found = answer.getSessions()[static_cast<unsigned>(lookUpSession(keys, session))];
  return {found.getId(), found.getProgram(), found.getPid()};
}

// Before anything is asked of the program.
void requireSavable(const Found& program) {
  std::error_code error;
  std::string executable = fs::read_symlink(fmt::format("/proc/{}/exe", program.pid), error);
  if (error || executable != program.program)
    fail(fmt::format(
        "the process of {} cannot be saved here: process {} is {}, not {}. If the program is on another host, only its GPU can "
        "be suspended",
        program.id, program.pid, error ? error.message() : executable, program.program));
  auto obstacles = process::obstaclesOf(program.pid);
  if (obstacles.empty()) return;
  std::string all;
  for (auto& one : obstacles) all += (all.empty() ? "" : "; ") + one;
  fail(fmt::format("process {} ({}) cannot be saved: {}. It goes on", program.pid, program.program, all));
}

kj::Promise<void> resumed(NodeClient& client, const std::string& directory) {
  auto request = client.node().resumeRequest();
  request.setDirectory(reader(directory));
  request.setProgress(kj::heap<ProgressLine>("resume"));
  return request.send().ignoreResult();
}

// The folder of a snapshot that is not to be: all that is in it, and itself if it was made for this.
void removeAll(const std::string& directory, bool wasThere) {
  std::error_code ignored;
  fs::rename(directory + "/" + snapshot::manifestFile, directory + "/" + snapshot::unfinishedManifest, ignored);
  if (!wasThere) {
    fs::remove_all(directory, ignored);
    return;
  }
  for (auto& entry : fs::directory_iterator(directory, ignored)) fs::remove_all(entry.path(), ignored);
}

void park(NodeClient& client, const Found& program) {
  auto request = client.node().parkRequest();
  request.setSession(reader("id:" + program.id));
  client.wait(request.send().ignoreResult());
  if (!ParkedProgram::find(program.pid, program.id)) fail(fmt::format("process {} has ended", program.pid));
  faultPoint("process.parked");
}

ProcessPart save(const process::Criu& criu, pid_t pid, const std::string& directory, const Interruption& interruption) {
  std::string folder = snapshot::processFolderOf(directory);
  if (mkdir(folder.c_str(), 0700) != 0) fail(fmt::format("cannot make the folder {}: {}", folder, strerror(errno)));
  criu.dump(pid, folder, process::isShellJob(pid));
  interruption.check();
  ProcessPart part = process::describe(pid);
  part.criu = criu.version();
  part.images = snapshot::sumImages(folder);
  faultPoint("process.saved");
  interruption.check();
  snapshot::addProcessPart(directory, part);
  return part;
}

bool hasEnded(pid_t pid) {
  char state = process::factsOf(pid).state;
  return state == 0 || state == 'Z';
}

// The program goes on from the snapshot that it has no use for any more.
[[noreturn]] void undo(NodeClient& client, const Found& program, const std::string& directory, bool wasThere, const kj::Exception& error) {
  std::string why = reasonOf(error);
  auto failure = kj::runCatchingExceptions([&] { client.wait(resumed(client, directory)); });
  if (failure != nullptr && !hasEnded(program.pid)) {
    std::string cause = reasonOf(KJ_ASSERT_NONNULL(failure));
    fail(fmt::format("{}. The program is suspended in {}, and cannot go on by itself: {}. `vgpuctl resume {}` has it go on", why, directory,
                     cause, directory));
  }
  removeAll(directory, wasThere);
  fail(fmt::format("{}. Nothing of the snapshot is left, and the program {}", why, failure == nullptr ? "goes on" : "has ended"));
}

void end(pid_t pid) {
  constexpr unsigned mostMilliseconds = 10000;
  tellParentSaved(pid);
  kill(pid, SIGKILL);
  for (unsigned i = 0; i < mostMilliseconds; ++i, usleep(1000))
    if (hasEnded(pid)) return;
  fail(fmt::format("process {} is saved, and has not ended 10 s after it was killed", pid));
}

}  // namespace

int saveWithProcess(const NodeAddress& address, const SuspendOptions& options, bool goesOn) {
  if (address.remote) fail("a process is saved on its own machine: name the node by its unix socket");
  auto criu = process::Criu::find();
  const std::string target = targetOf(options);
  const bool wasThere = fs::exists(target);
  NodeClient client(address);
  Found program = find(client, options.session);
  requireSavable(program);

  auto request = client.node().suspendRequest();
  request.setSession(reader("id:" + program.id));
  request.setDirectory(reader(target));
  request.setProgress(kj::heap<ProgressLine>("suspend"));
  request.setTimeoutSeconds(options.timeoutSeconds);
  auto answer = client.wait(request.send());

  Interruption interruption;
  ProcessPart part;
  KJ_IF_MAYBE (failure, kj::runCatchingExceptions([&] {
                 park(client, program);
                 interruption.check();
                 part = save(criu, program.pid, target, interruption);
               }))
    undo(client, program, target, wasThere, *failure);
  faultPoint("process.named");
  if (goesOn)
    client.wait(resumed(client, target));
  else
    end(program.pid);

  uint64_t imageBytes = 0;
  for (auto& [name, sum] : part.images) imageBytes += sum.bytes;
  if (options.json) {
    nlohmann::json result = reportJson(answer.getReport());
    result["directory"] = target;
    result["process"] = {
        {"pid", part.pid}, {"threads", part.threads.size()}, {"imageBytes", imageBytes}, {"mappedFiles", part.mapped.size()}};
    printJson(result);
  } else {
    fmt::print("{} {} {}: {}; process {} with {} threads, {}{}\n", printable(options.session),
               goesOn ? "has a snapshot in" : "is suspended to", target, summary(answer.getReport()), part.pid,
               part.threads.size(), humanBytes(imageBytes), goesOn ? ", which goes on" : ", has ended");
  }
  return 0;
}

}  // namespace vgpu::ctl
