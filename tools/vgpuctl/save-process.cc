// suspend --process and snapshot --process: all sessions of the process tree are suspended together, their programs release the node, CRIU
// saves the processes, and finally the snapshot's manifest names the process image. That last step decides: before it, any error lets all
// processes go on from the snapshot, which is then removed; after it, the processes are ended, or go on.
#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>

#include "checkpoint/process/criu.h"
#include "checkpoint/process/survey.h"
#include "tools/common/node-client.h"
#include "tools/common/printable.h"
#include "tools/common/reason.h"
#include "tools/vgpuctl/await-program.h"
#include "tools/vgpuctl/commands.h"
#include "tools/vgpuctl/interruption.h"
#include "tools/vgpuctl/operation.h"
#include "tools/vgpuctl/program-tree.h"
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
using Suspended = capnp::Response<control::Node::SuspendResults>;

void makeFolder(const std::string& path) {
  if (mkdir(path.c_str(), 0700) != 0) fail(fmt::format("cannot make the folder {}: {}", path, strerror(errno)));
}

// Removes the folder of a failed snapshot: all its content, and the folder itself if it was made for this.
void removeAll(const std::string& directory, bool wasThere) {
  std::error_code ignored;
  fs::rename(directory + "/" + snapshot::manifestFile, directory + "/" + snapshot::unfinishedManifest, ignored);
  if (!wasThere) {
    fs::remove_all(directory, ignored);
    return;
  }
  for (auto& entry : fs::directory_iterator(directory, ignored)) fs::remove_all(entry.path(), ignored);
}

class TreeSave {
 public:
  TreeSave(NodeClient& client, ProgramTree tree, const SuspendOptions& options)
      : client(client),
        tree(std::move(tree)),
        directory(this->tree.sessions.front().directory),
        timeoutSeconds(options.timeoutSeconds),
        wasThere(fs::exists(directory)),
        stopped(process::stoppedIn(this->tree.root)) {}

  // Suspends all sessions. If it throws, nothing has been changed.
  void begin();
  // Parks the programs, and saves the processes. If it throws kj::Exception, call undo().
  ProcessPart save(const process::Criu& criu, const Interruption& interruption);
  // Continues all programs. Returns what prevents that for one of them; empty if nothing does.
  std::string goOn();
  // Continues the programs from the snapshot, which is not needed afterwards. Throws kj::Exception with the reason `error`.
  [[noreturn]] void undo(const kj::Exception& error);
  // The snapshot contains the processes: ends them.
  void end(const ProcessPart& part) const;

  control::Report::Reader report(size_t session) const {
    return session == 0 ? done->getReport() : done->getOthers()[static_cast<unsigned>(session - 1)].getReport();
  }
  const ProgramTree& saved() const { return tree; }

 private:
  // Resumes these sessions, by their index in the tree, together. Returns what prevents that; empty if nothing does.
  std::string resume(const std::vector<size_t>& sessions);
  void park(const TreeSession& session);

  NodeClient& client;
  const ProgramTree tree;
  const std::string directory;
  const unsigned timeoutSeconds;
  const bool wasThere;
  const std::vector<int> stopped;  // those stopped by a signal before this began
  std::optional<Suspended> done;
  std::vector<pid_t> held;  // those that CRIU has stopped
};

void TreeSave::begin() {
  auto request = client.node().suspendRequest();
  request.setSession(reader("id:" + tree.sessions.front().id));
  request.setDirectory(reader(directory));
  request.setProgress(kj::heap<ProgressLine>("suspend"));
  request.setTimeoutSeconds(timeoutSeconds);
  auto all = request.initTree(static_cast<unsigned>(tree.sessions.size()));
  for (unsigned i = 0; i < all.size(); ++i) {
    all[i].setSession(reader(tree.sessions[i].id));
    all[i].setDirectory(reader(tree.sessions[i].directory));
  }
  done = client.wait(request.send());
  faultPoint("process.suspended");
}

void TreeSave::park(const TreeSession& session) {
  auto request = client.node().parkRequest();
  request.setSession(reader("id:" + session.id));
  client.wait(request.send().ignoreResult());
  if (!ParkedProgram::find(session.pid, session.id)) fail(fmt::format("process {} has ended", session.pid));
}

ProcessPart TreeSave::save(const process::Criu& criu, const Interruption& interruption) {
  for (auto& session : tree.sessions) park(session);
  faultPoint("process.parked");
  interruption.check();
  std::string folder = snapshot::processFolderOf(directory);
  makeFolder(folder);
  criu.dump(tree.root, folder, process::isShellJob(tree.root));
  held = process::treeOf(tree.root);
  interruption.check();
  ProcessPart part = process::describe(tree.root);
  part.criu = criu.version();
  part.stopped = stopped;
  for (size_t i = 1; i < tree.sessions.size(); ++i)
    part.sessions.push_back(snapshot::describeSession(directory, tree.sessions[i].id, tree.sessions[i].pid));
  part.images = snapshot::sumImages(folder);
  faultPoint("process.saved");
  interruption.check();
  snapshot::addProcessPart(directory, part);
  return part;
}

std::string TreeSave::resume(const std::vector<size_t>& sessions) {
  auto request = client.node().resumeRequest();
  request.setDirectory(reader(tree.sessions[sessions.front()].directory));
  request.setProgress(kj::heap<ProgressLine>("resume"));
  auto others = request.initOthers(static_cast<unsigned>(sessions.size() - 1));
  for (unsigned i = 0; i < others.size(); ++i) others.set(i, reader(tree.sessions[sessions[i + 1]].directory));
  auto failure = kj::runCatchingExceptions([&] { client.wait(request.send().ignoreResult()); });
  KJ_IF_MAYBE (error, failure) return reasonOf(*error);
  return "";
}

// Resumes them together, as sessions that share must be; if one of them cannot be resumed, because its process has ended, the others one by
// one.
std::string TreeSave::goOn() {
  std::vector<size_t> all(tree.sessions.size());
  std::iota(all.begin(), all.end(), size_t{0});
  std::string problem = resume(all);
  if (!problem.empty() && all.size() > 1) {
    problem.clear();
    for (size_t i : all)
      if (std::string reason = resume({i}); !reason.empty() && !process::hasEnded(tree.sessions[i].pid))
        problem += (problem.empty() ? "" : "; ") + reason;
  } else if (!problem.empty() && process::hasEnded(tree.sessions.front().pid)) {
    problem.clear();
  }
  continueProcesses(held, stopped);
  return problem;
}

void TreeSave::undo(const kj::Exception& error) {
  std::string why = reasonOf(error);
  if (std::string problem = goOn(); !problem.empty())
    fail(fmt::format("{}. The program is suspended to {} and could not be resumed: {}. `vgpuctl resume {}` lets it go on", why,
                     directory, problem, directory));
  removeAll(directory, wasThere);
  bool lives = !process::hasEnded(tree.sessions.front().pid);
  fail(fmt::format("{}. Nothing of the snapshot is left, and the program {}", why, lives ? "goes on" : "has ended"));
}

void TreeSave::end(const ProcessPart& part) const {
  tellParentSaved(tree.root);
  endProcesses(processesOf(part));
}

uint64_t imageBytesOf(const ProcessPart& part) {
  uint64_t bytes = 0;
  for (auto& [name, sum] : part.images) bytes += sum.bytes;
  return bytes;
}

nlohmann::json resultJson(const TreeSave& save, const ProcessPart& part) {
  auto& sessions = save.saved().sessions;
  nlohmann::json all = nlohmann::json::array();
  for (size_t i = 0; i < sessions.size(); ++i) {
    all.push_back(reportJson(save.report(i)));
    all.back().update({{"session", sessions[i].id}, {"pid", sessions[i].pid}, {"directory", sessions[i].directory}});
  }
  nlohmann::json result = all.front(), processes = nlohmann::json::array();
  for (auto& process : part.processes) processes.push_back({{"pid", process.pid}, {"name", process.name}});
  result["sessions"] = all;
  result["process"] = {{"pid", part.pid},
                       {"processes", processes},
                       {"threads", part.threads.size()},
                       {"imageBytes", imageBytesOf(part)},
                       {"mappedFiles", part.mapped.size()}};
  return result;
}

void print(const TreeSave& save, const ProcessPart& part, const std::string& session, bool goesOn) {
  auto& sessions = save.saved().sessions;
  size_t count = part.processes.size();
  std::string what = count == 1 ? fmt::format("process {}", part.pid) : fmt::format("{} processes", count);
  const char* fate = goesOn ? count == 1 ? "which goes on" : "which go on" : count == 1 ? "has ended" : "have ended";
  fmt::print("{} {} {}: {}; {} with {} threads, {}, {}\n", printable(session), goesOn ? "has a snapshot in" : "is suspended to",
             sessions.front().directory, summary(save.report(0)), what, part.threads.size(), humanBytes(imageBytesOf(part)),
             fate);
  for (size_t i = 1; i < sessions.size(); ++i)
    fmt::print("  with {} ({}, pid {}): {}\n", sessions[i].id, printable(sessions[i].name), sessions[i].pid,
               summary(save.report(i)));
}

}  // namespace

int saveWithProcess(const NodeAddress& address, const SuspendOptions& options, bool goesOn) {
  if (address.remote) fail("a process is saved on its own machine: run vgpuctl there, and name the node by its unix socket");
  auto criu = process::Criu::find();
  const NewSnapshot reserved = targetOf(options);
  const std::string& target = reserved.path();
  NodeClient client(address);
  ProgramTree tree = findTree(client, options.session, target);
  requireSavable(tree, criu);

  TreeSave save(client, std::move(tree), options);
  save.begin();
  Interruption interruption;
  ProcessPart part;
  KJ_IF_MAYBE (failure, kj::runCatchingExceptions([&] { part = save.save(criu, interruption); })) save.undo(*failure);
  faultPoint("process.named");
  if (!goesOn)
    save.end(part);
  else if (std::string problem = save.goOn(); !problem.empty())
    fail(fmt::format("the snapshot is in {0}, but the program could not be resumed: {1}. `vgpuctl resume {0}` lets it go on",
                     target, problem));
  if (options.json)
    printJson(resultJson(save, part));
  else
    print(save, part, options.session, goesOn);
  return 0;
}

}  // namespace vgpu::ctl
