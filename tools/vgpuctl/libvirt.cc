// `virsh save` first stops a machine, and then lets QEMU migrate it to a file. The programs of a stopped machine cannot be held: their
// threads may be inside calls, and messages that their relays have not read exist only in the mailbox. But QEMU can also migrate a running
// machine to a file, and libvirt only waits until that is done. So the machine is continued until its sessions are suspended, with as
// little of it sent as possible meanwhile, and is stopped again. Libvirt's file then has the machine's state at that moment.
#include "tools/vgpuctl/libvirt.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tools/common/printable.h"
#include "tools/common/reason.h"
#include "tools/common/spawn.h"
#include "tools/vgpuctl/machine-folder.h"
#include "tools/vgpuctl/saved-sessions.h"
#include "vgpu/base/fail.h"
#include "vgpu/base/fault-point.h"

namespace vgpu::ctl {
namespace {

namespace fs = std::filesystem;

constexpr auto virshLimit = 5 * kj::SECONDS;
constexpr auto statusInterval = 100 * kj::MILLISECONDS;
constexpr auto startLimit = 60 * kj::SECONDS;  // between libvirt's hook and a usable QEMU monitor

// The output of `virsh` with these arguments.
std::string outputOfVirsh(NodeClient& client, std::vector<std::string> words) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) fail("cannot make a pipe: " + std::string(strerror(errno)));
  kj::AutoCloseFd ours(ends[0]), theirs(ends[1]);
  kj::AutoCloseFd in(open("/dev/null", O_RDONLY | O_CLOEXEC));
  SpawnRequest request{.executable = "virsh"};
  request.arguments = {"virsh", "--quiet", "--connect", geteuid() == 0 ? "qemu:///system" : "qemu:///session"};
  std::ranges::move(words, std::back_inserter(request.arguments));
  std::erase_if(request.environment, [](const std::string& one) { return one.starts_with("LC_") || one.starts_with("LANG"); });
  request.inherits = {{in.get(), STDIN_FILENO}, {theirs.get(), STDOUT_FILENO}};
  request.deathSignal = SIGKILL;
  const pid_t virsh = spawn(request);
  theirs = nullptr;
  std::string output;
  auto caught = kj::runCatchingExceptions([&] {
    auto read = client.events().lowLevelProvider->wrapInputFd(kj::mv(ours));
    auto late = client.events().provider->getTimer().afterDelay(virshLimit).then([]() -> kj::String {
      fail("libvirt does not reply to virsh");
    });
    auto text = read->readAllText();
    output = client.wait(text.attach(kj::mv(read)).exclusiveJoin(kj::mv(late))).cStr();
  });
  if (caught != nullptr) kill(virsh, SIGKILL);
  reapChild(virsh);
  KJ_IF_MAYBE (problem, caught) kj::throwFatalException(kj::mv(*problem));
  return output;
}

// The value of a line such as "Job type:" or "Operation:".
std::string valueOf(const std::string& text, const std::string& name) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(name + ":")) continue;
    const size_t from = line.find_first_not_of(' ', name.size() + 1), to = line.find_last_not_of(' ');
    return from == std::string::npos ? "" : line.substr(from, to - from + 1);
  }
  return "";
}

// Waits until libvirt ends QEMU, because the machine is saved, or continues the machine, because saving failed.
void awaitEnd(NodeClient& client, Machine& machine, const std::string& name, const MachineFolder& folder,
              const std::vector<MachineSession>& found) {
  bool isWritten = false;
  for (;;) {
    const std::string step = client.wait(untilSignal(client, machine.nextStep()));
    if (step == "pre-switchover") machine.handOver();
    if (step == "failed" || step == "ended") {
      if (isWritten && step == "ended") return;
      fail(machine.reason());
    }
    if (step == "cancelled") fail("it was cancelled");
    if (step == "runs" && isWritten) fail("libvirt lets the machine go on");
    if (step != "completed") continue;
    folder.complete(name, found);
    isWritten = true;
  }
}

}  // namespace

std::optional<std::string> findLibvirtJob(NodeClient& client, const std::string& machine) {
  std::optional<std::string> job;
  auto caught = kj::runCatchingExceptions([&] {
    const std::string told = outputOfVirsh(client, {"domjobinfo", "--domain", machine});
    const std::string type = valueOf(told, "Job type");
    if (type == "None" || type == "Completed")
      job = "None";
    else if (!type.empty())
      job = valueOf(told, "Operation");
  });
  KJ_IF_MAYBE (problem, caught) {
    fmt::print(stderr, "vgpuctl: cannot ask libvirt for its job on '{}': {}\n", printable(machine),
               printable(reasonOf(*problem)));
  }
  return job;
}

bool isStoppedByLibvirt(NodeClient& client, const std::string& machine) {
  std::string state;
  kj::runCatchingExceptions([&] { state = outputOfVirsh(client, {"domstate", "--reason", "--domain", machine}); });
  return state.starts_with("paused (saving)") || state.starts_with("paused (migrating)");
}

std::string savedFolder(const std::string& parent, const std::string& machine) { return parent + "/" + machine; }

void forgetSaved(const std::string& parent, const std::string& machine) { MachineFolder(savedFolder(parent, machine)).remove(); }

void saveByLibvirt(NodeClient& client, Machine& machine, const MachineOptions& options,
                   const std::vector<MachineSession>& found) {
  const std::string name = machine.name();  // usable as a folder name, because the list of machines has it
  const MachineFolder folder(savedFolder(options.saves, name) + ".new");
  SavedSessions sessions(client, options, folder, found);
  folder.remove();  // left by a killed save
  folder.make();
  auto caught = kj::runCatchingExceptions([&] {
    sessions.suspend();
    if (const std::string why = sessions.problem(); !why.empty()) fail(why);
    faultPoint("machine.suspended");
    machine.monitor().forgetEvents();
    machine.monitor().run("stop");
    if (!machine.isMigrating()) fail(machine.reason());  // the forgotten events may have told of its end
    if (!sessionsOf(client, options, name).empty()) fail("a program opened a session meanwhile: save the machine again");
    machine.hasten();
    awaitEnd(client, machine, name, folder, found);
  });
  KJ_IF_MAYBE (problem, caught) {
    if (!machine.monitor().hasEnded()) {
      machine.cancel();
      machine.goOn();
      sessions.takeBack();
    } else {
      sessions.giveUp();
    }
    std::string why = printable(reasonOf(*problem));
    if (const std::string more = sessions.problem(); !more.empty())
      why += "; " + more + ". Its snapshot is in " + folder.path();
    else
      folder.remove();
    fail(why);
  }
  faultPoint("machine.saved");
  sessions.letGo();
  forgetSaved(options.saves, name);
  fs::rename(folder.path(), savedFolder(options.saves, name));
  fmt::print("'{}' is saved with {} sessions, which are in {}\n", printable(name), found.size(),
             savedFolder(options.saves, name));
  sessions.print("is suspended");
  std::fflush(stdout);
}

void restoreByLibvirt(NodeClient& client, const MachineOptions& options, void (*isReady)()) {
  const MachineFolder folder(savedFolder(options.saves, options.machine));
  SavedSessions sessions(client, options, folder, folder.sessions());
  sessions.prepare();
  if (!sessions.problem().empty()) fail("nothing is restored: " + sessions.problem());
  faultPoint("machine.restored");
  isReady();
  auto& timer = client.events().provider->getTimer();
  kj::Maybe<kj::Own<MachineMonitor>> monitor;
  for (const auto begun = timer.now(); monitor == nullptr;) {
    auto caught = kj::runCatchingExceptions([&] { monitor = kj::heap<MachineMonitor>(client.events(), options.monitor); });
    KJ_IF_MAYBE (problem, caught) {
      if (timer.now() - begun > startLimit) kj::throwFatalException(kj::mv(*problem));
      client.wait(untilSignal(client, timer.afterDelay(statusInterval)));
    }
  }
  // libvirt may take long to load it, and if it is restored paused, somebody has to continue it.
  auto& qmp = *KJ_ASSERT_NONNULL(monitor);
  while (!qmp.run("query-status").value("running", false)) client.wait(untilSignal(client, timer.afterDelay(statusInterval)));
  sessions.resume();
  sessions.print("runs again");
  std::fflush(stdout);
}

}  // namespace vgpu::ctl
