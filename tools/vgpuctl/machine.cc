#include "tools/vgpuctl/machine.h"

#include <kj/async-unix.h>
#include <signal.h>

#include <algorithm>
#include <set>

#include "tools/common/printable.h"
#include "vgpu/base/fail.h"
#include "vgpu/base/sizes.h"

namespace vgpu::ctl {
namespace {

using nlohmann::json;

constexpr const char* holdCapability = "pause-before-switchover";
// QEMU hands a machine over when sending the rest at the recent speed takes less than the downtime limit. With this bandwidth it sends one
// page each tenth of a second, while a running machine writes more.
const json slowPace = {{"max-bandwidth", 100}, {"downtime-limit", 1}};
// How much may be left when the handover is considered near: more than could be sent unnoticed between two checks. Pages of zeros go at the
// speed of memory.
constexpr uint64_t leastLeft = 64 * MiB;
constexpr double leastSecondsLeft = 0.25;

json capability(const char* name, bool state) { return {{"capability", name}, {"state", state}}; }

bool isUnderWay(const std::string& status) {
  static const char* const over[] = {"", "none", "completed", "failed", "cancelled"};
  return std::ranges::find(over, status) == std::end(over);
}

// The guest, of those that have sessions on the node, that is the machine; empty if there is none.
std::string guestOf(capnp::List<control::SessionInfo>::Reader sessions, const MachineOptions& options,
                    const std::string& machine) {
  if (!options.guest.empty()) return options.guest;
  std::set<std::string> guests;
  for (auto session : sessions)
    if (session.getPlace().getGuest().size() != 0) guests.insert(session.getPlace().getGuest());
  if (guests.empty()) return "";
  if (guests.size() == 1) return *guests.begin();
  if (!guests.contains(machine))
    fail("the node has programs of several virtual machines, but none is called '" + printable(machine) +
         "': name one with --guest");
  return machine;
}

}  // namespace

Machine::Machine(NodeClient& client, const MachineOptions& options) : client(client), qmp(client.events(), options.monitor) {
  known = qmp.run("query-name").value("name", "");
  if (!options.machine.empty() && known != options.machine)
    fail("the machine at " + options.monitor + " is '" + printable(known) + "', not '" + options.machine + "'");
  if (isMigrating() && !isIncoming())
    fail("a migration of '" + printable(known) + "' is in progress already: wait until it has ended");
}

Machine::~Machine() {
  if (qmp.hasEnded()) return;
  kj::runCatchingExceptions([&] { hasten(); });
  if (!holds) return;
  kj::runCatchingExceptions([&] {
    qmp.run("migrate-set-capabilities", {{"capabilities", {capability(holdCapability, false)}}});
  });
}

bool Machine::isHeldBeforeHandover() {
  for (const json& found : qmp.run("query-migrate-capabilities"))
    if (found.value("capability", "") == holdCapability) return found.value("state", false);
  return false;
}

void Machine::holdBeforeHandover() { hold(isHeldBeforeHandover()); }

void Machine::holdAgain() {
  if (!isHeldBeforeHandover()) hold(false);
}

void Machine::hold(bool isHeld) {
  json wanted = json::array({capability("events", true)});
  if (!isHeld) wanted.push_back(capability(holdCapability, true));
  qmp.run("migrate-set-capabilities", {{"capabilities", wanted}});
  holds = holds || !isHeld;
}

kj::Promise<std::string> Machine::nextStep() {
  return qmp.nextEvent().then(
      [this](json&& event) -> kj::Promise<std::string> {
        const std::string name = event.value("event", "");
        if (name == "MIGRATION") return event.value("data", json::object()).value("status", "");
        if (name == "RESUME") return std::string("runs");
        if (name == "STOP") return std::string("stops");
        return nextStep();
      },
      [](kj::Exception&&) -> kj::Promise<std::string> { return std::string("ended"); });
}

void Machine::handOver() {
  if (!holds) return;
  KJ_IF_MAYBE (problem, kj::runCatchingExceptions([&] { qmp.run("migrate-continue", {{"state", "pre-switchover"}}); })) {
    // The client that started the migration may have set the capability first, as libvirt does.
    if (qmp.hasEnded() || status() == "pre-switchover") kj::throwFatalException(kj::mv(*problem));
  }
}

bool Machine::isIncoming() { return qmp.run("query-status").value("status", "") == "inmigrate"; }
bool Machine::isMigrating() { return isUnderWay(status()); }

bool Machine::isEmpty(MachineMonitor& monitor) {
  return monitor.run("query-status").value("status", "") == "inmigrate" &&
         !isUnderWay(monitor.run("query-migrate").value("status", ""));
}

void Machine::slow() {
  if (!formerPace.is_null()) return;
  const json now = qmp.run("query-migrate-parameters");
  json former;
  for (auto& [name, value] : slowPace.items()) former[name] = now.at(name);
  qmp.run("migrate-set-parameters", slowPace);
  formerPace = std::move(former);
}

void Machine::hasten() {
  if (formerPace.is_null()) return;
  qmp.run("migrate-set-parameters", formerPace);
  formerPace = nullptr;
}

bool Machine::isNearlyThere() {
  const json now = qmp.run("query-migrate");
  if (!now.contains("ram")) return false;
  const double bytesPerSecond = now["ram"].value("mbps", 0.0) * 1e6 / 8;
  const uint64_t left = now["ram"].value("remaining", uint64_t{0});
  const uint64_t sinceLast = wasLeft > left ? wasLeft - left : 0;  // `mbps` lags behind, and does not include pages of zeros
  wasLeft = left;
  return left < leastLeft + 3 * sinceLast + static_cast<uint64_t>(bytesPerSecond * leastSecondsLeft);
}

std::string Machine::cancel() {
  auto caught = kj::runCatchingExceptions([&] {
    if (isMigrating()) qmp.run("migrate_cancel");
    hasten();  // not earlier: the machine would be handed over
  });
  KJ_IF_MAYBE (problem, caught) {
    if (!qmp.hasEnded()) kj::throwFatalException(kj::mv(*problem));
  }
  const std::string end = conclude();
  if (end != "completed") qmp.forgetEvents();
  return end;
}

std::string Machine::conclude() {
  std::string now;
  auto caught = kj::runCatchingExceptions([&] {
    while (isUnderWay(now = status())) client.wait(client.events().provider->getTimer().afterDelay(20 * kj::MILLISECONDS));
  });
  if (qmp.hasEnded()) return "ended";
  KJ_IF_MAYBE (problem, caught) kj::throwFatalException(kj::mv(*problem));
  return now;
}

void Machine::goOn() {
  json now = qmp.run("query-status");
  // QEMU is ending the migration, and continues the machine itself if that failed.
  for (; now.value("status", "") == "finish-migrate"; now = qmp.run("query-status"))
    client.wait(client.events().provider->getTimer().afterDelay(20 * kj::MILLISECONDS));
  if (!now.value("running", false)) qmp.run("cont");
}

bool Machine::runs() { return qmp.run("query-status").value("running", false); }

std::string Machine::reason() {
  if (qmp.hasEnded()) return "its QEMU has ended";
  return printable(qmp.run("query-migrate").value("error-desc", "QEMU gives no reason"));
}

std::string Machine::status() { return qmp.run("query-migrate").value("status", ""); }

std::vector<MachineSession> sessionsOf(NodeClient& client, const MachineOptions& options, const std::string& machine) {
  std::vector<MachineSession> all;
  auto listed = client.wait(client.node().listRequest().send());
  const std::string ours = guestOf(listed.getSessions(), options, machine);
  std::vector<std::string> missing = options.sessions;
  for (auto session : listed.getSessions()) {
    const std::string id = session.getId(), name = session.getName(), guest = session.getPlace().getGuest();
    auto wanted = std::ranges::find_if(missing, [&](const std::string& text) { return text == id || text == name; });
    if (wanted != missing.end())
      missing.erase(wanted);
    else if (!options.sessions.empty() || !session.getRelayed() || (!guest.empty() && guest != ours))
      continue;
    if (session.getState() != control::State::RUNNING) {
      if (!options.sessions.empty()) fail("session " + id + " is not running");
      continue;
    }
    auto place = session.getPlace();
    all.push_back(
        {id, name, session.getProgram(), session.getPid(), guest, place.getSlot(), place.getClaim(), place.getFileBytes()});
  }
  if (!missing.empty()) fail("the node has no session '" + missing.front() + "'");
  return all;
}

void takeSignals() {
  kj::UnixEventPort::captureSignal(SIGINT);
  kj::UnixEventPort::captureSignal(SIGTERM);
}

kj::Promise<void> signalled(NodeClient& client) {
  auto& port = client.events().unixEventPort;
  return port.onSignal(SIGINT).exclusiveJoin(port.onSignal(SIGTERM)).then([](siginfo_t&& info) -> void {
    fail(std::string("interrupted by ") + (info.si_signo == SIGINT ? "SIGINT" : "SIGTERM"));
  });
}

}  // namespace vgpu::ctl
