#include "tools/vgpuctl/machine.h"

#include <kj/async-unix.h>
#include <signal.h>

#include <algorithm>

#include "tools/common/printable.h"
#include "vgpu/base/fail.h"

namespace vgpu::ctl {
namespace {

using nlohmann::json;

constexpr const char* holdCapability = "pause-before-switchover";

json capability(const char* name, bool state) { return {{"capability", name}, {"state", state}}; }

bool isUnderWay(const std::string& status) {
  static const char* const over[] = {"", "none", "completed", "failed", "cancelled"};
  return std::ranges::find(over, status) == std::end(over);
}

}  // namespace

Machine::Machine(NodeClient& client, const MachineOptions& options) : client(client), qmp(client.events(), options.monitor) {
  known = qmp.run("query-name").value("name", "");
  if (!options.machine.empty() && known != options.machine)
    fail("the machine at " + options.monitor + " is '" + printable(known) + "', not '" + options.machine + "'");
  if (isUnderWay(status())) fail("a migration of '" + printable(known) + "' is under way already: wait until it has ended");
}

Machine::~Machine() {
  if (!holds || qmp.hasEnded()) return;
  kj::runCatchingExceptions([&] {
    qmp.run("migrate-set-capabilities", {{"capabilities", {capability(holdCapability, false)}}});
  });
}

void Machine::holdBeforeHandover() {
  bool isHeld = false;
  for (const json& found : qmp.run("query-migrate-capabilities"))
    if (found.value("capability", "") == holdCapability) isHeld = found.value("state", false);
  json wanted = json::array({capability("events", true)});
  if (!isHeld) wanted.push_back(capability(holdCapability, true));
  qmp.run("migrate-set-capabilities", {{"capabilities", wanted}});
  holds = !isHeld;
}

kj::Promise<std::string> Machine::nextStep() {
  return qmp.nextEvent().then(
      [this](json&& event) -> kj::Promise<std::string> {
        const std::string name = event.value("event", "");
        if (name == "MIGRATION") return event.value("data", json::object()).value("status", "");
        if (name == "RESUME") return std::string("runs");
        return nextStep();
      },
      [](kj::Exception&&) -> kj::Promise<std::string> { return std::string("ended"); });
}

void Machine::handOver() {
  if (holds) qmp.run("migrate-continue", {{"state", "pre-switchover"}});
}

void Machine::cancel() {
  for (bool isTold = false; !qmp.hasEnded() && isUnderWay(status()); isTold = true) {
    if (!isTold) qmp.run("migrate_cancel");
    client.wait(client.events().provider->getTimer().afterDelay(20 * kj::MILLISECONDS));
  }
  qmp.forgetEvents();
}

std::string Machine::reason() {
  if (qmp.hasEnded()) return "its QEMU has ended";
  return printable(qmp.run("query-migrate").value("error-desc", "QEMU gives no reason"));
}

std::string Machine::status() { return qmp.run("query-migrate").value("status", ""); }

std::vector<MachineSession> sessionsOf(NodeClient& client, const MachineOptions& options) {
  std::vector<MachineSession> all;
  auto listed = client.wait(client.node().listRequest().send());
  std::vector<std::string> missing = options.sessions;
  for (auto session : listed.getSessions()) {
    const std::string id = session.getId(), name = session.getName();
    auto wanted = std::ranges::find_if(missing, [&](const std::string& text) { return text == id || text == name; });
    if (wanted != missing.end())
      missing.erase(wanted);
    else if (!options.sessions.empty() || !session.getRelayed())
      continue;
    if (session.getState() != control::State::RUNNING) {
      if (!options.sessions.empty()) fail("session " + id + " does not run");
      continue;
    }
    all.push_back({id, name});
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
