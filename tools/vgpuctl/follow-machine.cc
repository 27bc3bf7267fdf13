// machine follow: the sessions of a virtual machine's programs move to another node with it. There are two kinds of sessions.
//
// Programs that reach the node by the machine's network: a session's two relays neither lose nor repeat messages, whatever happens to the
// connection (docs/remote.md). So session and machine need not switch at the same moment: the session's memory is sent ahead during the
// machine's migration, and the session is cut over when the machine runs at its target, because that needs the program's cooperation.
//
// Programs that share memory with the node: the machine's migration does not send what the host writes there. So the machine is kept from
// stopping until their sessions are held, and the machine then writes that memory once more, so that its final content is sent
// (Departure.hold). When the machine runs at its target, the program there is offered the worker that has been prepared. The program is
// part of the machine's memory, so the session runs where the machine runs.
//
// Before the machine is handed over to its target, every failure leaves everything where it was. From then on only QEMU knows where the
// machine runs, so neither a signal nor a failure ends this process before QEMU has said so.
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <nlohmann/json.hpp>

#include "tools/common/printable.h"
#include "tools/common/reason.h"
#include "tools/vgpuctl/departing-sessions.h"
#include "tools/vgpuctl/libvirt.h"
#include "tools/vgpuctl/machine.h"
#include "tools/vgpuctl/session-info.h"
#include "vgpu/base/fail.h"
#include "vgpu/base/fault-point.h"
#include "vgpu/control/unix-socket.h"

namespace vgpu::ctl {
namespace {

using nlohmann::json;

// The state of the machine's migration and of its sessions.
enum class Holding {
  notYet,  // the handover is far away
  rounds,  // the handover is delayed, while sessions' memory is sent ahead
  begun,   // the programs that share memory with the machine are being held
  done,    // they are held, or there are none
};
constexpr auto lookInterval = 10 * kj::MILLISECONDS;
constexpr auto arrivalInterval = 100 * kj::MILLISECONDS;
constexpr const char* noJob = "None";

enum class End {
  moved,
  saved,  // by libvirt, with its sessions
  stayed,
  ended,  // its QEMU has ended, and the machine has not moved
  idle,   // the same, and no migration had begun
};

class Following {
 public:
  Following(NodeClient& client, const MachineOptions& options, std::string target)
      : client(client), options(options), machine(client, options), sessions(client, options, std::move(target)) {}

  // Follows one migration, from beginning to end.
  End follow() {
    sessions.reset();
    why.clear();
    holding = Holding::notYet;
    isBegun = isHandedOver = isCompleted = isSaved = false;
    job.reset();
    if (options.uri.empty() && !isHere()) return End::idle;
    machine.holdBeforeHandover();
    isStopped = !machine.runs() && !goesOn();
    if (options.uri.empty() && !begins()) return End::idle;
    bool hasMoved = false;
    auto caught = kj::runCatchingExceptions([&] {
      begin();
      if (!isSaved) hasMoved = completes();
    });
    KJ_IF_MAYBE (exception, caught) {
      why = printable(reasonOf(*exception));
      const std::string end = isHandedOver ? machine.conclude() : machine.cancel();
      isCompleted = isBegun && !isToDisk() && end == "completed";
      hasMoved = isCompleted || (isHandedOver && end == "ended");
      if (!hasMoved) sessions.forget();
    }
    if (isSaved) return End::saved;
    if (hasMoved) return leave();
    sessions.letGo();
    return machine.monitor().hasEnded() ? End::ended : End::stayed;
  }

  // Returns whether everything is at the target.
  bool report(End outcome) {
    if (outcome == End::saved) return true;  // saveByLibvirt() has reported it
    if (options.json) {
      printJson(describe(outcome));
    } else if (outcome == End::stayed) {
      fmt::print(stderr, "vgpuctl: '{}' and all of its sessions stay: {}\n", printable(machine.name()), why);
    } else if (outcome != End::moved) {
      fmt::print(stderr, "vgpuctl: '{}' has not moved: {}\n", printable(machine.name()), why);
    } else if (isToDisk()) {
      fmt::print("'{}' is saved; it has no running sessions\n", printable(machine.name()));
      if (*job == saveJob && !options.saves.empty()) forgetSaved(options.saves, machine.name());
    } else {
      fmt::print("'{}' has moved with {} sessions\n", printable(machine.name()), sessions.count());
      for (auto& line : sessions.lines()) fmt::print("{}\n", line);
    }
    std::fflush(stdout);
    return outcome == End::moved && sessions.haveLeft();
  }

 private:
  // Resolves to "look" if `next` does not resolve within `interval`.
  kj::Promise<std::string> orLook(kj::Promise<std::string> next, kj::Duration interval) {
    return next.exclusiveJoin(client.events().provider->getTimer().afterDelay(interval).then([] { return std::string("look"); }));
  }

  // Waits for a machine that comes from another host, or from disk.
  bool isHere() {
    auto& timer = client.events().provider->getTimer();
    bool isComing = true;
    auto caught = kj::runCatchingExceptions([&] { isComing = machine.isIncoming(); });
    while (isComing && !machine.monitor().hasEnded()) {
      client.wait(untilSignal(client, timer.afterDelay(arrivalInterval)));
      caught = kj::runCatchingExceptions([&] { isComing = machine.isIncoming() || machine.isMigrating(); });
      if (!isComing) machine.monitor().forgetEvents();
    }
    if (machine.monitor().hasEnded()) return hasEnded();
    KJ_IF_MAYBE (problem, caught) kj::throwFatalException(kj::mv(*problem));
    return true;
  }

  bool hasEnded() {
    why = "its QEMU has ended";
    return false;
  }

  // Waits until somebody else starts the migration. When libvirt has finished bringing a machine here, it resets the migration settings
  // that it made for that, and thereby settings that were made here meanwhile; so they are made again.
  bool begins() {
    auto step = machine.nextStep().fork();
    for (;;) {
      auto next = step.addBranch();
      if (options.isLibvirts) next = orLook(kj::mv(next), arrivalInterval);
      const std::string now = client.wait(untilSignal(client, kj::mv(next)));
      if (now == "look") {
        kj::runCatchingExceptions([&] { machine.holdAgain(); });  // if a migration has begun or QEMU has ended, the next step says so
        continue;
      }
      if (now == "setup" || now == "active") return isBegun = true;
      if (now == "stops") isStopped = !goesOn();
      if (now == "runs") isStopped = false;
      if (now == "ended") return hasEnded();
      step = machine.nextStep().fork();
    }
  }

  // libvirt stops a machine before it saves it, or moves it without --live. A stopped machine's programs cannot answer, so the machine is
  // continued until they have; QEMU stops it at the end in any case. A machine that somebody had paused before stays paused.
  bool goesOn() {
    if (!options.isLibvirts || sessionsOf(client, options, machine.name()).empty()) return false;
    job = findLibvirtJob(client, machine.name());
    if (job != migrationJob && (job != saveJob || options.saves.empty())) return false;
    if (!isStoppedByLibvirt(client, machine.name())) return false;
    auto caught = kj::runCatchingExceptions([&] { machine.monitor().run("cont"); });
    return caught == nullptr;
  }
  // Whether libvirt's operation is not a migration to another host, as far as libvirt says.
  bool isToDisk() const { return job && *job != migrationJob && *job != noJob; }
  // Whether libvirt itself continues the migration at pre-switchover. It does so for its own migrations, and only one client may: QEMU
  // refuses the second one, and libvirt then cancels the migration. If libvirt does not say what it does, we continue the migration,
  // because the machine must not stand still for ever.
  bool isHandedOverByLibvirt() const { return options.isLibvirts && options.uri.empty() && job == migrationJob; }

  // Starts moving all present sessions; and the machine's migration, if nobody has started it.
  void begin() {
    const auto now = sessionsOf(client, options, machine.name());
    if (!now.empty() && options.uri.empty()) machine.slow();  // otherwise it may be handed over before the target is ready
    if (options.isLibvirts && options.uri.empty()) job = findLibvirtJob(client, machine.name());
    if (isToDisk() && !now.empty()) return save(now);
    if (isStopped && !now.empty())
      fail("the machine is stopped, so its programs cannot answer. Move it while it runs, or save it with `vgpuctl machine save`");
    for (auto& session : now) sessions.add(session);  // all of them move, or none does, and neither does the machine
    if (!machine.isNearlyThere()) machine.hasten();
    if (options.uri.empty()) return;
    machine.monitor().run("migrate", {{"uri", options.uri}});
    isBegun = true;
  }

  void save(const std::vector<MachineSession>& now) {
    if (*job != saveJob) fail("libvirt's job '" + *job + "' does not take its sessions along: suspend them first (vgpuctl suspend)");
    if (options.saves.empty())
      fail("libvirt saves it, but no folder is given for its sessions: name one at the end of its line in the list of machines, or suspend "
           "the sessions first (vgpuctl suspend), and then save it");
    if (isStopped)
      fail("it was stopped before it was saved, so its programs cannot answer: let it go on, or suspend its sessions (vgpuctl suspend), "
           "and then save it");
    saveByLibvirt(client, machine, options, now);
    isSaved = true;
  }

  // Delays the handover until the target has received the memory of all sessions once, or has refused one; then holds the sessions that
  // share memory with the machine. There may be no session, until a program begins one.
  void look() {
    if (holding == Holding::notYet && machine.isNearlyThere()) {
      machine.slow();
      holding = Holding::rounds;
    } else if (holding == Holding::rounds && !sessions.areAdvancing()) {
      sessions.pauseGuest(machine.name());
      if (sessions.addLate(machine.name())) return;
      sessions.hold();
      holding = Holding::begun;
    } else if (holding == Holding::begun && sessions.areHeld()) {
      faultPoint("machine.held");
      machine.hasten();
      holding = Holding::done;
    }
  }

  // Waits for the end of the machine's migration. Returns whether the machine has moved, as far as its QEMU says.
  bool completes() {
    auto trouble = sessions.trouble().fork();
    auto step = machine.nextStep().fork();
    for (;;) {
      auto next = step.addBranch();
      if (holding != Holding::done) next = orLook(kj::mv(next), lookInterval);
      if (!isHandedOver) {
        next = next.exclusiveJoin(trouble.addBranch().then([] { return std::string("trouble"); }));
        next = untilSignal(client, kj::mv(next));
      }
      const std::string now = client.wait(kj::mv(next));
      if (now == "trouble") fail(sessions.firstProblem());
      if (now == "look") {
        look();
        continue;
      }
      if (now == "completed") return isCompleted = true;  // leave() handles what follows
      step = machine.nextStep().fork();
      if (now == "pre-switchover") {
        handOver();
      } else if (now == "failed" || now == "cancelled" || now == "ended") {
        why = now == "cancelled" ? "its migration was cancelled" : machine.reason();
        return now == "ended" && isHandedOver;
      }
    }
  }

  // The machine's processors stand still. Sessions that have not moved yet move when they go on, or start moving then.
  void handOver() {
    sessions.addLate(machine.name());
    if (!sessions.areHeld()) fail("it stopped before its programs could be held: start its migration again, with less bandwidth");
    holding = Holding::done;
    faultPoint("machine.handing-over");
    sessions.requireReady();
    isHandedOver = true;
    if (!isHandedOverByLibvirt()) machine.handOver();
    sessions.advanceOthers();
  }

  // The machine's programs answer when it runs. If it runs where it was, because somebody has continued it there, its sessions stay.
  End leave() {
    faultPoint("machine.moved");
    bool isBack = false;
    auto left = sessions.leave();
    auto back = runsAgain().then([this, &isBack] {
      isBack = true;
      return sessions.stay();
    });
    client.wait(left.exclusiveJoin(kj::mv(back)));
    sessions.conclude(isBack);
    if (!isCompleted && !sessions.hasAnyLeft()) {
      why = "its QEMU ended after the switch to the target, and none of its programs answers there";
      return End::ended;
    }
    why.clear();
    return End::moved;
  }

  kj::Promise<void> runsAgain() {
    return machine.nextStep().then([this](std::string&& step) -> kj::Promise<void> {
      if (step == "ended") return kj::NEVER_DONE;
      if (step != "runs") return runsAgain();
      auto asked = machine.monitor()
                       .execute("query-status")
                       .then([](json&& now) { return now.value("running", false); }, [](kj::Exception&&) { return false; });
      return asked.then([this](bool isRunning) -> kj::Promise<void> {
        if (isRunning) return kj::READY_NOW;
        return runsAgain();  // an event from before it moved
      });
    });
  }

  json describe(End outcome) const {
    return {{"machine", machine.name()},
            {"moved", outcome == End::moved},
            {"problem", why.empty() ? json(nullptr) : json(why)},
            {"sessions", sessions.describe()}};
  }

  NodeClient& client;
  const MachineOptions& options;
  Machine machine;
  DepartingSessions sessions;
  Holding holding = Holding::notYet;
  bool isStopped = false;          // before its migration begins
  bool isBegun = false;            // from then on QEMU's status is that of this migration
  bool isHandedOver = false;       // it may run at the target
  bool isCompleted = false;        // it runs there
  bool isSaved = false;            // libvirt has saved it to a file
  std::optional<std::string> job;  // libvirt's operation on it, if libvirt says so
  std::string why;                 // why the machine stays, or this was interrupted
};

// The hook gives all followers of a machine the same log: the next follower waits until the former one has ended. Returns whether there was
// one.
bool awaitFormer() {
  if (flock(STDERR_FILENO, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return false;
  while (flock(STDERR_FILENO, LOCK_EX) != 0 && errno == EINTR) {
  }
  return true;
}

bool hasMonitor(const MachineOptions& options) {
  return kj::runCatchingExceptions([&] { connectUnix(options.monitor); }) == nullptr;
}

void isReadyToRestore() {
  fmt::print("ready\n");
  std::fflush(stdout);
  dup2(STDERR_FILENO, STDOUT_FILENO);
}

}  // namespace

int followMachine(const NodeAddress& node, const MachineOptions& options) {
  NodeAddress target = resolveNode(options.target);
  if (options.isLibvirts && awaitFormer() && !options.restores && !hasMonitor(options)) return 0;  // the former one's QEMU has ended
  takeSignals();
  NodeClient client(node);
  if (options.restores) restoreByLibvirt(client, options, isReadyToRestore);
  Following following(client, options, target.remote ? target.remote->text() : target.directory);
  bool isAllThere = true;
  for (;;) {
    const End outcome = following.follow();
    if (outcome == End::idle && options.stays) return isAllThere ? 0 : 1;
    isAllThere = following.report(outcome);
    if (!options.stays || outcome == End::ended) return isAllThere ? 0 : 1;
  }
}

}  // namespace vgpu::ctl
