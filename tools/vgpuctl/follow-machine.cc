// machine follow: the sessions of a virtual machine's programs go to another node with it. There are two kinds.
//
// Programs that reach the node by the machine's network: a session's two relays lose nothing and repeat nothing, whatever the
// connection does (docs/remote.md). So session and machine need no common moment: the session's memory goes ahead while the
// machine's does, and it is cut over when the machine runs at its target, because its program must be asked.
//
// Programs that share memory with the node: what the host writes there is not sent by the machine's migration. So their sessions
// are held before the machine stops, which is kept from stopping until then, and the machine writes that memory once more, so
// that it is sent as it is then (Departure.hold). When the machine runs at its target, the program there is offered the worker
// that has been made ready. The machine's memory has the program, so where the machine runs is where the session does.
//
// Until the machine is let go to its target every failure leaves all where they were. From then on it is QEMU that knows where
// the machine runs, so neither a signal nor a failure ends this before QEMU has said it.
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

// Of the machine while it migrates, and of its sessions.
enum class Holding {
  notYet,  // it is far from being handed over
  rounds,  // it is kept from that, while their memory goes ahead
  begun,   // the programs that share memory with it are being held
  done,    // they are held, or there are none
};
constexpr auto lookInterval = 10 * kj::MILLISECONDS;
constexpr auto arrivalInterval = 100 * kj::MILLISECONDS;
constexpr const char* noJob = "None";

enum class End {
  moved,
  saved,  // by libvirt, with its sessions
  stayed,
  ended,  // its QEMU has, and it has not moved
  idle,   // the same, and nobody had begun to move it
};

class Following {
 public:
  Following(NodeClient& client, const MachineOptions& options, std::string target)
      : client(client), options(options), machine(client, options), sessions(client, options, std::move(target)) {}

  // One migration, from its begin to its end.
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

  // Whether everything is at the target.
  bool report(End outcome) {
    if (outcome == End::saved) return true;  // which saveByLibvirt() has said
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
  // "look" if nothing has come by then.
  kj::Promise<std::string> orLook(kj::Promise<std::string> next, kj::Duration interval) {
    return next.exclusiveJoin(client.events().provider->getTimer().afterDelay(interval).then([] { return std::string("look"); }));
  }

  // A machine that comes from another host, or from disk, is waited for.
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

  // Somebody else begins it. When libvirt has done with a machine that it has brought here, it takes back what it has set for that, and with
  // it what has been set here meanwhile.
  bool begins() {
    auto step = machine.nextStep().fork();
    for (;;) {
      auto next = step.addBranch();
      if (options.isLibvirts) next = orLook(kj::mv(next), arrivalInterval);
      const std::string now = client.wait(untilSignal(client, kj::mv(next)));
      if (now == "look") {
        kj::runCatchingExceptions([&] { machine.holdAgain(); });  // one that has begun, or has ended, says so next
        continue;
      }
      if (now == "setup" || now == "active") return isBegun = true;
      if (now == "stops") isStopped = !goesOn();
      if (now == "runs") isStopped = false;
      if (now == "ended") return hasEnded();
      step = machine.nextStep().fork();
    }
  }

  // libvirt stops a machine before it saves it, or moves it without --live. Then its programs can be asked nothing, so it goes on
  // until they have been; QEMU stops it at the end in any case. One that somebody has paused before stays so.
  bool goesOn() {
    if (!options.isLibvirts || sessionsOf(client, options, machine.name()).empty()) return false;
    job = findLibvirtJob(client, machine.name());
    if (job != migrationJob && (job != saveJob || options.saves.empty())) return false;
    if (!isStoppedByLibvirt(client, machine.name())) return false;
    auto caught = kj::runCatchingExceptions([&] { machine.monitor().run("cont"); });
    return caught == nullptr;
  }
  // What libvirt does is no migration to another host, as far as it says so.
  bool isToDisk() const { return job && *job != migrationJob && *job != noJob; }
  // Who lets it go on at pre-switchover: libvirt, of its migrations, and only once: QEMU refuses whoever is second, and libvirt
  // cancels a migration then. If libvirt does not say what it does, the machine must not stand still for ever.
  bool isHandedOverByLibvirt() const { return options.isLibvirts && options.uri.empty() && job == migrationJob; }

  // All sessions that there are; and the machine's migration, if nobody has begun it.
  void begin() {
    const auto now = sessionsOf(client, options, machine.name());
    if (!now.empty() && options.uri.empty()) machine.slow();  // it may be handed over before the target is ready
    if (options.isLibvirts && options.uri.empty()) job = findLibvirtJob(client, machine.name());
    if (isToDisk() && !now.empty()) return save(now);
    if (isStopped && !now.empty())
      fail("the machine is stopped, so its programs cannot answer. Move it while it runs, or save it with `vgpuctl machine save`");
    for (auto& session : now) sessions.add(session);  // all of them, or none goes, and neither does the machine
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

  // Keeps the machine until the target has the memory of all sessions once, or has refused it, and then holds those that share
  // memory with the machine. There may be none, until a program begins.
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

  // While the machine migrates. Whether it has moved, as far as its QEMU says.
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
      if (now == "completed") return isCompleted = true;  // what comes after it is leave()'s
      step = machine.nextStep().fork();
      if (now == "pre-switchover") {
        handOver();
      } else if (now == "failed" || now == "cancelled" || now == "ended") {
        why = now == "cancelled" ? "its migration was cancelled" : machine.reason();
        return now == "ended" && isHandedOver;
      }
    }
  }

  // Its processors stand still. Who has not come to the target yet comes when they go on, or moves then from the beginning.
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

  // The machine's programs answer when it runs. If it runs where it was, because somebody has let it go on there, its sessions
  // stay.
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
        return runsAgain();  // that was before it moved
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
  bool isStopped = false;          // before it is begun
  bool isBegun = false;            // so QEMU's status is of this migration
  bool isHandedOver = false;       // it may run at the target
  bool isCompleted = false;        // it does
  bool isSaved = false;            // libvirt has it in a file
  std::optional<std::string> job;  // what libvirt does with it, if it says so
  std::string why;                 // it stays, or this was interrupted
};

// The hook gives each follower of a machine the same log: the next one waits until the former one has ended. Whether there was
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
  if (options.isLibvirts && awaitFormer() && !options.restores && !hasMonitor(options)) return 0;  // its QEMU has ended too
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
