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

#include <nlohmann/json.hpp>

#include "tools/common/printable.h"
#include "tools/common/reason.h"
#include "tools/vgpuctl/departing-sessions.h"
#include "tools/vgpuctl/machine.h"
#include "tools/vgpuctl/session-info.h"
#include "vgpu/base/fail.h"
#include "vgpu/base/fault-point.h"

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

enum class End {
  moved,
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
    isBegun = isHandedOver = isCompleted = false;
    if (options.uri.empty() && !isHere()) return End::idle;
    machine.holdBeforeHandover();
    isStopped = !machine.runs();
    if (options.uri.empty() && !begins()) return End::idle;
    bool hasMoved = false;
    auto caught = kj::runCatchingExceptions([&] {
      begin();
      hasMoved = completes();
    });
    KJ_IF_MAYBE (exception, caught) {
      why = printable(reasonOf(*exception));
      const std::string end = isHandedOver ? machine.conclude() : machine.cancel();
      isCompleted = isBegun && end == "completed";
      hasMoved = isCompleted || (isHandedOver && end == "ended");
      if (!hasMoved) sessions.forget();
    }
    if (hasMoved) return leave();
    sessions.letGo();
    return machine.monitor().hasEnded() ? End::ended : End::stayed;
  }

  // Whether everything is at the target.
  bool report(End outcome) {
    if (options.json) {
      printJson(describe(outcome));
    } else if (outcome == End::stayed) {
      fmt::print(stderr, "vgpuctl: '{}' stays, and all of its sessions: {}\n", printable(machine.name()), why);
    } else if (outcome != End::moved) {
      fmt::print(stderr, "vgpuctl: '{}' has not moved: {}\n", printable(machine.name()), why);
    } else {
      fmt::print("'{}' has moved with {} sessions\n", printable(machine.name()), sessions.count());
      for (auto& line : sessions.lines()) fmt::print("{}\n", line);
    }
    std::fflush(stdout);
    return outcome == End::moved && sessions.haveLeft();
  }

 private:
  std::string next() { return client.wait(untilSignal(client, machine.nextStep())); }

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

  // Somebody else begins it.
  bool begins() {
    for (;;) {
      const std::string step = next();
      if (step == "setup" || step == "active") return isBegun = true;
      if (step == "stops" || step == "runs") isStopped = step == "stops";
      if (step == "ended") return hasEnded();
    }
  }

  // All sessions that there are; and the machine's migration, if nobody has begun it.
  void begin() {
    const auto now = sessionsOf(client, options, machine.name());
    if (isStopped && !now.empty())
      fail(
          "the machine is stopped, so its programs cannot be asked. Move it while it runs, and save it with `vgpuctl machine "
          "save`, "
          "not with `virsh save`");
    if (!now.empty() && options.uri.empty()) machine.slow();  // it may be handed over before the target is ready
    for (auto& session : now) sessions.add(session);          // all of them, or none goes, and neither does the machine
    if (!machine.isNearlyThere()) machine.hasten();
    if (options.uri.empty()) return;
    machine.monitor().run("migrate", {{"uri", options.uri}});
    isBegun = true;
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
      if (holding != Holding::done)
        next = next.exclusiveJoin(
            client.events().provider->getTimer().afterDelay(lookInterval).then([] { return std::string("look"); }));
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
    if (!sessions.areHeld()) fail("it stopped before its programs could be held: begin its migration again, with less bandwidth");
    holding = Holding::done;
    faultPoint("machine.handing-over");
    sessions.requireReady();
    isHandedOver = true;
    machine.handOver();
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
      why = "its QEMU has ended when it had been let go, and none of its programs replies at the target";
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
  bool isStopped = false;     // before it is begun
  bool isBegun = false;       // so QEMU's status is of this migration
  bool isHandedOver = false;  // it may run at the target
  bool isCompleted = false;   // it does
  std::string why;            // it stays, or this was interrupted
};

}  // namespace

int followMachine(const NodeAddress& node, const MachineOptions& options) {
  NodeAddress target = resolveNode(options.target);
  takeSignals();
  NodeClient client(node);
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
