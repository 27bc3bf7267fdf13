// machine save and restore: a virtual machine goes to disk with the sessions of its programs, and comes back with them.
//
// A program holds its calls while its session is suspended, so the machine's memory and the session's snapshot are of one moment,
// whenever the machine is saved after the suspend: its programs have seen everything done that the snapshot has, and nothing
// else.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "tools/common/guest-sockets.h"
#include "tools/common/printable.h"
#include "tools/common/reason.h"
#include "tools/vgpuctl/machine.h"
#include "tools/vgpuctl/operation.h"
#include "tools/vgpuctl/progress-line.h"
#include "tools/vgpuctl/session-info.h"
#include "vgpu/base/fail.h"
#include "vgpu/control/text.h"

namespace vgpu::ctl {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

struct Saved {
  MachineSession session;
  std::string snapshot;  // a directory
  double seconds = 0;
  double onGpuSeconds = 0;  // of these
  bool isDone = false;
  std::string problem;
};

class SavedSessions {
 public:
  SavedSessions(NodeClient& client, const MachineOptions& options) : client(client), options(options) {}

  void suspend(std::vector<MachineSession> sessions) {
    for (auto& session : sessions) all.push_back({.session = session, .snapshot = options.target + "/" + session.id});
    each([&](Saved& one) {
      auto request = client.node().suspendRequest();
      request.setSession(reader("id:" + one.session.id));
      request.setDirectory(reader(one.snapshot));
      request.setProgress(kj::heap<ProgressLine>("save"));
      request.setTimeoutSeconds(options.timeoutSeconds);
      return request.send().then(
          [&one](capnp::Response<control::Node::SuspendResults>&& results) { note(one, results.getReport()); });
    });
  }

  // Those that are suspended.
  void resume() {
    std::erase_if(all, [](const Saved& one) { return !one.isDone; });
    each([&](Saved& one) {
      auto request = client.node().resumeRequest();
      request.setDirectory(reader(one.snapshot));
      request.setProgress(kj::heap<ProgressLine>("restore"));
      return request.send().then([&one](capnp::Response<control::Node::ResumeResults>&& results) {
        one.session = {results.getSession().getId(), results.getSession().getName()};
        note(one, results.getReport());
      });
    });
  }

  // Those of a folder that suspend() has filled.
  void find() {
    for (auto& entry : fs::directory_iterator(options.target))
      if (entry.is_directory())
        all.push_back({.session = {entry.path().filename(), ""}, .snapshot = entry.path(), .isDone = true});
    std::ranges::sort(all, {}, &Saved::snapshot);
  }

  std::string problem() const {
    for (auto& one : all)
      if (!one.isDone) return one.session.id + ": " + one.problem;
    return "";
  }

  void print(const char* what) const {
    if (options.json) {
      json list = json::array();
      for (auto& one : all)
        list.push_back({{"session", one.session.id},
                        {"name", one.session.name},
                        {"snapshot", one.snapshot},
                        {"seconds", one.seconds},
                        {"onGpuSeconds", one.onGpuSeconds},
                        {"problem", one.isDone ? json(nullptr) : json(one.problem)}});
      return printJson(list);
    }
    for (auto& one : all) {
      const std::string who = one.session.id + " (" + printable(one.session.name) + ")";
      if (one.isDone)
        fmt::print("{} {} in {:.3f} s, {:.3f} s of it for its GPU\n", who, what, one.seconds, one.onGpuSeconds);
      else
        fmt::print("{} does not run: {}\n", who, one.problem);
    }
  }

 private:
  static void note(Saved& one, control::Report::Reader report) {
    one.seconds = one.onGpuSeconds = report.getSeconds();
    // What the program does, by the machine's network.
    for (auto phase : report.getPhases())
      for (const char* its : {"gate", "program", "handover"})
        if (phase.getName() == its) one.onGpuSeconds -= phase.getSeconds();
  }

  // All at once: a machine's programs wait for the longest.
  template <typename Work>
  void each(Work work) {
    auto promises = kj::heapArrayBuilder<kj::Promise<void>>(all.size());
    for (auto& one : all) {
      one.isDone = false;
      promises.add(work(one).then([&one] { one.isDone = true; },
                                  [&one](kj::Exception&& exception) { one.problem = printable(reasonOf(exception)); }));
    }
    client.wait(kj::joinPromises(promises.finish()));
  }

  NodeClient& client;
  const MachineOptions& options;
  std::vector<Saved> all;
};

// As QEMU's migrate takes it: a command of the shell.
std::string intoFile(const std::string& path) {
  std::string quoted;
  for (char c : path) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return "exec:cat > '" + quoted + "'";
}

// Beside the sessions: the folders in which those that share memory with the machine have their processes, a line each.
std::string foldersFile(const MachineOptions& options) { return options.target + "/attach"; }

void noteFolders(const MachineOptions& options, const std::string& runDirectory, const std::vector<MachineSession>& sessions) {
  std::set<std::string> folders;
  for (auto& session : sessions)
    if (!session.guest.empty()) folders.insert(attachFolderOf(runDirectory, session.guest));
  if (folders.empty()) return;
  std::ofstream file(foldersFile(options));
  for (auto& folder : folders) file << folder << '\n';
  if (!file.flush()) fail("there is no space in " + options.target);
}

// The machine's memory has mailboxes of an earlier state than their processes.
void attachNoted(const MachineOptions& options) {
  std::ifstream file(foldersFile(options));
  for (std::string folder; std::getline(file, folder);)
    if (attachSessions(folder) == 0)
      fail("no process of the machine's sessions is left in " + folder +
           ": a machine whose programs share memory with its host is restored on that host, while it runs");
}

// Whether the machine has been saved.
bool isSaved(NodeClient& client, Machine& machine, std::string& why) {
  for (;;) {
    const std::string step = client.wait(untilSignal(client, machine.nextStep()));
    if (step == "completed") return true;
    if (step == "failed" || step == "cancelled" || step == "ended") {
      why = step == "cancelled" ? "it was cancelled" : machine.reason();
      return false;
    }
  }
}

}  // namespace

int saveMachine(const NodeAddress& node, const MachineOptions& asked) {
  MachineOptions options = asked;
  options.target = absolute(asked.target);
  if (options.uri.empty()) options.uri = intoFile(options.target + "/machine");
  takeSignals();
  NodeClient client(node);
  Machine machine(client, options);
  auto found = sessionsOf(client, options, machine.name());
  if (mkdir(options.target.c_str(), 0700) != 0)
    fail("no folder " + options.target + " can be made for the sessions: " + std::string(strerror(errno)));
  machine.monitor().run("migrate-set-capabilities", {{"capabilities", {{{"capability", "events"}, {"state", true}}}}});

  noteFolders(options, client.runDirectory(), found);
  SavedSessions sessions(client, options);
  sessions.suspend(std::move(found));
  std::string why = sessions.problem();
  if (why.empty()) {
    auto caught = kj::runCatchingExceptions([&] {
      machine.monitor().run("migrate", {{"uri", options.uri}});
      isSaved(client, machine, why);
    });
    KJ_IF_MAYBE (exception, caught) {
      machine.cancel();
      why = printable(reasonOf(*exception));
    }
  }
  if (!why.empty()) {
    sessions.resume();
    std::error_code ignored;
    if (sessions.problem().empty())
      fs::remove_all(options.target, ignored);
    else
      why += "; " + sessions.problem();
    fail("'" + printable(machine.name()) + "' is not saved and goes on: " + why);
  }
  sessions.print("is suspended");
  machine.monitor().run("quit");
  return 0;
}

int restoreMachine(const NodeAddress& node, const MachineOptions& asked) {
  MachineOptions options = asked;
  options.target = absolute(asked.target);
  if (!fs::is_directory(options.target)) fail("there is no folder " + options.target + ": `machine save` makes it");
  takeSignals();
  NodeClient client(node);
  MachineMonitor monitor(client.events(), options.monitor);
  auto isRunning = [&] { return monitor.run("query-status").value("running", false); };
  auto late = client.events().provider->getTimer().afterDelay(options.timeoutSeconds * kj::SECONDS).fork();
  while (!isRunning()) {
    auto next = monitor.nextEvent().ignoreResult().exclusiveJoin(
        late.addBranch().then([&] { fail(fmt::format("the machine does not run after {} s", options.timeoutSeconds)); }));
    client.wait(untilSignal(client, kj::mv(next)));
  }
  attachNoted(options);
  SavedSessions sessions(client, options);
  sessions.find();
  sessions.resume();
  sessions.print("runs again");
  return sessions.problem().empty() ? 0 : 1;
}

}  // namespace vgpu::ctl
