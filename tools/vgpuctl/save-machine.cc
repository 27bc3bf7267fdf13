// machine save and restore: saves a virtual machine to disk with the sessions of its programs, and restores it with them.
//
// A program's calls are blocked while its session is suspended, so the machine's memory and the session's snapshot are consistent whenever
// the machine is saved after the suspend: its programs have seen exactly the effects that the snapshot contains.
//
// The processes of sessions that share memory with the machine end when it is saved, and are replaced by others before it is loaded, on any
// host. Sessions that reach the node by network are suspended at their node, where their relays wait for the machine.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "tools/common/printable.h"
#include "tools/common/reason.h"
#include "tools/vgpuctl/machine-folder.h"
#include "tools/vgpuctl/machine.h"
#include "tools/vgpuctl/saved-sessions.h"
#include "vgpu/base/fail.h"
#include "vgpu/base/fault-point.h"

namespace vgpu::ctl {
namespace {

constexpr auto lookInterval = 100 * kj::MILLISECONDS;

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

// After a failure: everything goes on, if the machine ran before (`ran`) and can be continued.
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
    fail(notSaved + ", and is stopped: " + why + "; " + printable(reasonOf(*problem)) +
         ". Let it go on, and resume its sessions from " + folder.path());
  }
  sessions.takeBack();
  if (sessions.problem().empty())
    folder.remove();
  else
    why += "; " + sessions.problem();
  fail(notSaved + after + ": " + why);
}

// Loading may take any time; afterwards somebody may have to continue the machine.
void awaitRunning(NodeClient& client, MachineMonitor& monitor, const MachineOptions& options) {
  auto& timer = client.events().provider->getTimer();
  for (auto loadedAt = timer.now();;) {
    const auto status = monitor.run("query-status");
    if (status.value("running", false)) return;
    if (status.value("status", "") == "inmigrate") loadedAt = timer.now();
    if (timer.now() - loadedAt > options.timeoutSeconds * kj::SECONDS)
      fail(fmt::format("the machine is loaded, but does not run after {} s", options.timeoutSeconds));
    client.wait(untilSignal(client, timer.afterDelay(lookInterval)));
  }
}

// `mayHave`: if QEMU was given -incoming with the memory's location, it may be about to read it while it seems to have none.
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
      machine.monitor().run("migrate", {{"uri", options.uri.empty() ? folder.writing(machine.monitor()) : options.uri}});
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
         " has its memory already, but its sessions must be restored first: start its QEMU with -incoming defer; this command then loads " +
         folder.path() + "/machine");
  sessions.prepare();
  if (!sessions.problem().empty()) fail("nothing is restored: " + sessions.problem());
  faultPoint("machine.restored");
  if (isEmpty) giveMemory(monitor, options.uri.empty() ? folder.reading(monitor) : options.uri, !sessions.anyShares());
  awaitRunning(client, monitor, options);
  sessions.resume();
  sessions.print("runs again");
  return sessions.problem().empty() ? 0 : 1;
}

}  // namespace vgpu::ctl
