// suspend --process and snapshot --process: all sessions of the tree of processes are suspended, their programs let go of the
// node, CRIU saves the processes, and the snapshot's manifest names that. What happens to the processes depends on nothing but
// that last step: before it, any error has all of them go on from the snapshot, which is removed then; after it they are ended,
// or go on.
#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
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

class TreeSave {
 public:
  TreeSave(NodeClient& client, ProgramTree tree, const SuspendOptions& options)
      : client(client),
        tree(std::move(tree)),
        directory(this->tree.sessions.front().directory),
        timeoutSeconds(options.timeoutSeconds),
        wasThere(fs::exists(directory)),
        stopped(process::stoppedIn(this->tree.root)),
        done(this->tree.sessions.size()) {}

  // Suspends the first session. Nothing has happened if that throws.
  void begin() {
    done.front() = client.wait(suspend(tree.sessions.front()));
    faultPoint("process.begun");
  }
  // Suspends the others, parks all of them, and saves the processes. Throws kj::Exception; then undo().
  ProcessPart save(const process::Criu& criu, const Interruption& interruption);
  // All programs go on. Returns what keeps one from that; empty if nothing does.
  std::string goOn();
  // They go on from a snapshot that they have no use for any more. Throws kj::Exception, whose reason is `error`.
  [[noreturn]] void undo(const kj::Exception& error);
  // The snapshot has them.
  void end(const ProcessPart& part) const;

  auto report(size_t session) const { return done[session]->getReport(); }
  const ProgramTree& saved() const { return tree; }

 private:
  kj::Promise<Suspended> suspend(const TreeSession& session);
  void suspendOthers();
  void park(const TreeSession& session);

  NodeClient& client;
  const ProgramTree tree;
  const std::string directory;
  const unsigned timeoutSeconds;
  const bool wasThere;
  const std::vector<int> stopped;              // by a signal, before anything was done
  std::vector<std::optional<Suspended>> done;  // by session
  std::vector<pid_t> held;                     // stopped by CRIU
};

kj::Promise<Suspended> TreeSave::suspend(const TreeSession& session) {
  auto request = client.node().suspendRequest();
  request.setSession(reader("id:" + session.id));
  request.setDirectory(reader(session.directory));
  request.setProgress(kj::heap<ProgressLine>("suspend"));
  request.setTimeoutSeconds(timeoutSeconds);
  return request.send();
}

// At the same time. If one fails, this throws when the others have ended, in whichever way.
void TreeSave::suspendOthers() {
  if (tree.sessions.size() > 1) makeFolder(directory + "/" + snapshot::sessionsFolder);
  std::vector<kj::Promise<Suspended>> asked;
  for (size_t i = 1; i < tree.sessions.size(); ++i) asked.push_back(suspend(tree.sessions[i]));
  kj::Maybe<kj::Exception> failure;
  for (size_t i = 1; i < tree.sessions.size(); ++i)
    KJ_IF_MAYBE (error, kj::runCatchingExceptions([&] { done[i] = client.wait(kj::mv(asked[i - 1])); })) {
      if (failure == nullptr) failure = kj::mv(*error);
    }
  KJ_IF_MAYBE (error, failure) kj::throwFatalException(kj::mv(*error));
  faultPoint("process.suspended");
}

void TreeSave::park(const TreeSession& session) {
  auto request = client.node().parkRequest();
  request.setSession(reader("id:" + session.id));
  client.wait(request.send().ignoreResult());
  if (!ParkedProgram::find(session.pid, session.id)) fail(fmt::format("process {} has ended", session.pid));
}

ProcessPart TreeSave::save(const process::Criu& criu, const Interruption& interruption) {
  suspendOthers();
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

std::string TreeSave::goOn() {
  std::string problem;
  for (size_t i = 0; i < done.size(); ++i) {
    if (!done[i]) continue;  // it has never stopped
    auto& session = tree.sessions[i];
    auto request = client.node().resumeRequest();
    request.setDirectory(reader(session.directory));
    request.setProgress(kj::heap<ProgressLine>("resume"));
    auto failure = kj::runCatchingExceptions([&] { client.wait(request.send().ignoreResult()); });
    KJ_IF_MAYBE (error, failure) {
      if (!process::hasEnded(session.pid)) problem += (problem.empty() ? "" : "; ") + reasonOf(*error);
    }
  }
  continueProcesses(held, stopped);
  return problem;
}

void TreeSave::undo(const kj::Exception& error) {
  std::string why = reasonOf(error);
  if (std::string problem = goOn(); !problem.empty())
    fail(fmt::format("{}. The program is suspended in {}, and cannot go on by itself: {}. `vgpuctl resume {}` has it go on", why,
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
  if (address.remote) fail("a process is saved on its own machine: name the node by its unix socket");
  auto criu = process::Criu::find();
  const std::string target = targetOf(options);
  NodeClient client(address);
  ProgramTree tree = findTree(client, options.session, target);
  requireSavable(tree);

  TreeSave save(client, std::move(tree), options);
  save.begin();
  Interruption interruption;
  ProcessPart part;
  KJ_IF_MAYBE (failure, kj::runCatchingExceptions([&] { part = save.save(criu, interruption); })) save.undo(*failure);
  faultPoint("process.named");
  if (!goesOn)
    save.end(part);
  else if (std::string problem = save.goOn(); !problem.empty())
    fail(fmt::format("there is a snapshot in {0}, and the program cannot go on by itself: {1}. `vgpuctl resume {0}` has it go on",
                     target, problem));
  if (options.json)
    printJson(resultJson(save, part));
  else
    print(save, part, options.session, goesOn);
  return 0;
}

}  // namespace vgpu::ctl
