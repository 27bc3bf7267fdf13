// machine save and restore: a virtual machine goes to disk with the sessions of its programs, and comes back with them.
//
// A program holds its calls while its session is suspended, so the machine's memory and the session's snapshot are of one moment,
// whenever the machine is saved after the suspend: its programs have seen everything done that the snapshot has, and nothing
// else.
//
// The processes of sessions that share memory with the machine end when it is saved, and others take their places before it is
// loaded: on any host. Those that reach the node by network are suspended at their node, where their relays wait for the machine.
#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tools/common/printable.h"
#include "tools/common/reason.h"
#include "tools/vgpuctl/machine-folder.h"
#include "tools/vgpuctl/machine.h"
#include "tools/vgpuctl/progress-line.h"
#include "tools/vgpuctl/session-info.h"
#include "vgpu/base/fail.h"
#include "vgpu/base/fault-point.h"
#include "vgpu/control/text.h"
#include "vgpu/snapshot/manifest.h"
#include "vgpu/snapshot/snapshot-files.h"

namespace vgpu::ctl {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

constexpr auto lookInterval = 100 * kj::MILLISECONDS;

struct Saved {
  MachineSession session;
  std::string snapshot;  // a directory
  double seconds = 0;
  double onGpuSeconds = 0;  // of these
  bool isDone = false;
  std::string problem;
  kj::Maybe<control::Arrival::Client> arrival;  // of one that comes back with its machine
};

class SavedSessions {
 public:
  SavedSessions(NodeClient& client, const MachineOptions& options, const MachineFolder& folder,
                const std::vector<MachineSession>& sessions)
      : client(client), options(options) {
    for (auto& session : sessions) all.push_back({.session = session, .snapshot = folder.snapshotOf(session.id)});
  }

  bool anyShares() const {
    return std::ranges::any_of(all, [](const Saved& one) { return one.session.sharesMemory(); });
  }

  void suspend() {
    each([&](Saved& one) {
      auto request = client.node().suspendRequest();
      request.setSession(reader("id:" + one.session.id));
      request.setDirectory(reader(one.snapshot));
      request.setProgress(kj::heap<ProgressLine>("save"));
      request.setTimeoutSeconds(options.timeoutSeconds);
      request.setWithMachine(one.session.sharesMemory());
      return request.send().then(
          [&one](capnp::Response<control::Node::SuspendResults>&& results) { note(one, results.getReport()); });
    });
  }

  // After a failure: those that are suspended. What has been suspended, and could not be made ready for the machine, is too.
  void takeBack() {
    std::erase_if(all, [](const Saved& one) { return !fs::exists(one.snapshot + "/" + snapshot::manifestFile); });
    resume();
  }

  // Their machine has ended: nobody will resume those that share memory with it.
  void giveUp() {
    letGo();
    std::erase_if(all, [](const Saved& one) { return one.session.sharesMemory(); });
  }

  // The machine is on disk: the node forgets those that share memory with it.
  void letGo() {
    each([&](Saved& one) -> kj::Promise<void> {
      if (!one.session.sharesMemory()) return kj::READY_NOW;
      auto request = client.node().parkRequest();
      request.setSession(reader("id:" + one.session.id));
      return request.send().ignoreResult();
    });
  }

  // Before the machine is loaded: those that share memory with it take their places there, and get their workers.
  void prepare() {
    letGoOfFormer();
    each([&](Saved& one) -> kj::Promise<void> {
      if (!one.session.sharesMemory()) return kj::READY_NOW;
      auto request = client.node().receiveRequest();
      describe(one.session, request.initSession());
      request.setSnapshotVersion(snapshot::snapshotVersion);
      request.setIsElsewhere(true);
      return request.send().then([&one](capnp::Response<control::Node::ReceiveResults>&& results) {
        auto restore = one.arrival.emplace(results.getArrival()).restoreRequest();
        restore.setProgress(kj::heap<ProgressLine>("restore"));
        restore.setDirectory(reader(one.snapshot));
        return restore.send().ignoreResult();
      });
    });
  }

  void resume() {
    each([&](Saved& one) -> kj::Promise<void> {
      KJ_IF_MAYBE (arrival, one.arrival) {
        return arrival->completeRequest().send().then(
            [&one](capnp::Response<control::Arrival::CompleteResults>&& results) { note(one, results.getReport()); });
      }
      auto request = client.node().resumeRequest();
      request.setDirectory(reader(one.snapshot));
      request.setProgress(kj::heap<ProgressLine>("restore"));
      return request.send().then(
          [&one](capnp::Response<control::Node::ResumeResults>&& results) { note(one, results.getReport()); });
    });
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
    // What the program does, by the machine's network, and the machine.
    for (auto phase : report.getPhases())
      for (const char* its : {"gate", "program", "machine", "handover"})
        if (phase.getName() == its) one.onGpuSeconds -= phase.getSeconds();
  }

  // What an earlier `machine save` has left here that was ended before its end: their machine is in the folder.
  void letGoOfFormer() {
    auto listed = client.wait(client.node().listRequest().send());
    for (auto session : listed.getSessions()) {
      const bool isOurs = std::ranges::any_of(
          all, [&](const Saved& one) { return one.session.sharesMemory() && session.getId() == one.session.id.c_str(); });
      if (!isOurs || session.getState() != control::State::SUSPENDED || session.getPlace().getGuest().size() == 0) continue;
      auto request = client.node().parkRequest();
      request.setSession(reader("id:" + std::string(session.getId())));
      client.wait(untilSignal(client, request.send().ignoreResult()));
    }
  }

  void describe(const MachineSession& session, control::SessionInfo::Builder info) const {
    info.setId(reader(session.id));
    info.setName(reader(session.name));
    info.setProgram(reader(session.program));
    info.setPid(session.pid);
    auto place = info.initPlace();
    place.setGuest(reader(options.guest.empty() ? session.guest : options.guest));
    place.setSlot(session.slot);
    place.setClaim(session.claim);
    place.setFileBytes(session.fileBytes);
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
  std::deque<Saved> all;
};

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

// After a failure. Everything goes on, if the machine did (`ran`) and still can.
[[noreturn]] void giveUp(Machine& machine, bool ran, SavedSessions& sessions, const MachineFolder& folder, std::string why) {
  const std::string notSaved = "'" + printable(machine.name()) + "' is not saved";
  std::string after = ran ? " and goes on" : " and stays as it was";
  auto caught = kj::runCatchingExceptions([&] {
    if (ran) machine.goOn();
  });
  if (machine.monitor().hasEnded()) {
    after = ", and its QEMU has ended";
    sessions.giveUp();
  } else KJ_IF_MAYBE (problem, caught) {
    fail(notSaved + ", and stands still: " + why + "; " + printable(reasonOf(*problem)) +
         ". Let it go on, and resume its sessions from " + folder.path());
  }
  sessions.takeBack();
  if (sessions.problem().empty())
    folder.remove();
  else
    why += "; " + sessions.problem();
  fail(notSaved + after + ": " + why);
}

// However long it takes to load it; then somebody may have to let it go on.
void awaitRunning(NodeClient& client, MachineMonitor& monitor, const MachineOptions& options) {
  auto& timer = client.events().provider->getTimer();
  for (auto loadedAt = timer.now();;) {
    const auto status = monitor.run("query-status");
    if (status.value("running", false)) return;
    if (status.value("status", "") == "inmigrate") loadedAt = timer.now();
    if (timer.now() - loadedAt > options.timeoutSeconds * kj::SECONDS)
      fail(fmt::format("the machine is loaded, and does not run after {} s", options.timeoutSeconds));
    client.wait(untilSignal(client, timer.afterDelay(lookInterval)));
  }
}

// `mayHave`: a machine whose QEMU was told by -incoming where its memory is may be about to read it, and seem to have none.
void giveMemory(MachineMonitor& monitor, const std::string& from, bool mayHave) {
  KJ_IF_MAYBE (failure, kj::runCatchingExceptions([&] { monitor.run("migrate-incoming", {{"uri", from}}); })) {
    bool isUnderWay = reasonOf(*failure).find("already been started") != std::string::npos;
    if (!mayHave || !isUnderWay) kj::throwFatalException(kj::mv(*failure));
  }
}

}  // namespace

int saveMachine(const NodeAddress& node, const MachineOptions& options) {
  const MachineFolder folder(options.target);
  takeSignals();
  NodeClient client(node);
  Machine machine(client, options);
  const auto found = sessionsOf(client, options, machine.name());
  folder.make();
  machine.monitor().run("migrate-set-capabilities", {{"capabilities", {{{"capability", "events"}, {"state", true}}}}});

  const bool ran = machine.runs();

  SavedSessions sessions(client, options, folder, found);
  sessions.suspend();
  faultPoint("machine.suspended");
  std::string why = sessions.problem();
  if (why.empty()) {
    auto caught = kj::runCatchingExceptions([&] {
      machine.monitor().run("migrate", {{"uri", options.uri.empty() ? folder.writing() : options.uri}});
      if (isSaved(client, machine, why)) folder.complete(machine.name(), found);
    });
    KJ_IF_MAYBE (exception, caught) {
      machine.cancel();
      why = printable(reasonOf(*exception));
    }
  }
  if (!why.empty()) giveUp(machine, ran, sessions, folder, why);
  sessions.print("is suspended");
  faultPoint("machine.saved");
  sessions.letGo();
  machine.monitor().run("quit");
  if (!sessions.problem().empty()) fmt::print(stderr, "vgpuctl: the machine is saved; {}\n", sessions.problem());
  return 0;
}

int restoreMachine(const NodeAddress& node, const MachineOptions& options) {
  const MachineFolder folder(options.target);
  const auto saved = folder.sessions();
  if (options.uri.empty()) folder.verifyMemory();
  takeSignals();
  NodeClient client(node);
  MachineMonitor monitor(client.events(), options.monitor);
  SavedSessions sessions(client, options, folder, saved);
  const bool isEmpty = Machine::isEmpty(monitor);
  if (sessions.anyShares() && !isEmpty)
    fail("the machine at " + options.monitor +
         " has its memory already, and its sessions are not there: start its QEMU with -incoming defer, and this gives it " +
         folder.path() + "/machine when they are");
  sessions.prepare();
  if (!sessions.problem().empty()) fail("nothing is restored: " + sessions.problem());
  faultPoint("machine.restored");
  if (isEmpty) giveMemory(monitor, options.uri.empty() ? folder.reading() : options.uri, !sessions.anyShares());
  awaitRunning(client, monitor, options);
  sessions.resume();
  sessions.print("runs again");
  return sessions.problem().empty() ? 0 : 1;
}

}  // namespace vgpu::ctl
