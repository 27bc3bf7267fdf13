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

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ranges>

#include "tools/common/printable.h"
#include "tools/common/reason.h"
#include "tools/vgpuctl/machine.h"
#include "tools/vgpuctl/progress-line.h"
#include "tools/vgpuctl/session-info.h"
#include "vgpu/base/fail.h"
#include "vgpu/base/fault-point.h"
#include "vgpu/control/text.h"

namespace vgpu::ctl {
namespace {

using nlohmann::json;

struct Departing {
  MachineSession session;
  control::Departure::Client departure;
  kj::Promise<void> advanced = kj::READY_NOW;
  kj::Promise<void> held = kj::READY_NOW;
  kj::Promise<void> watched = kj::READY_NOW;  // from then on: whether the target still has it
  bool isAdvancing = false, isHeld = false, hasLeft = false;
  std::string device, problem;
  double heldSeconds = 0;

  bool sharesMemory() const { return session.sharesMemory(); }
};

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
      : client(client), options(options), target(std::move(target)), machine(client, options) {}

  // One migration, from its begin to its end.
  End follow() {
    sessions.clear();
    why.clear();
    troubled = kj::newPromiseAndFulfiller<void>();
    holding = Holding::notYet;
    pause = nullptr;
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
      if (!hasMoved) sessions.clear();
    }
    if (hasMoved) return leave();
    letGo();
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
      fmt::print("'{}' has moved with {} sessions\n", printable(machine.name()), sessions.size());
      for (auto& one : sessions) fmt::print("{}\n", lineOf(one));
    }
    std::fflush(stdout);
    return outcome == End::moved && std::ranges::all_of(sessions, &Departing::hasLeft);
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
    const auto now = sessionsNow();
    if (isStopped && !now.empty())
      fail(
          "the machine is stopped, so its programs cannot be asked. Move it while it runs, and save it with `vgpuctl machine "
          "save`, "
          "not with `virsh save`");
    if (!now.empty() && options.uri.empty()) machine.slow();  // it may be handed over before the target is ready
    for (auto& session : now) depart(session);
    if (!machine.isNearlyThere()) machine.hasten();
    if (options.uri.empty()) return;
    machine.monitor().run("migrate", {{"uri", options.uri}});
    isBegun = true;
  }

  // They stay.
  void letGo() {
    for (auto& one : sessions) {
      for (auto* work : {&one.advanced, &one.held, &one.watched}) *work = kj::READY_NOW;
      one.departure = nullptr;
    }
    pause = nullptr;
  }

  std::vector<MachineSession> sessionsNow() { return sessionsOf(client, options, machine.name()); }

  // The target takes all sessions, or none goes, and neither does the machine.
  void depart(const MachineSession& session) {
    auto request = client.node().departRequest();
    request.setSession(reader("id:" + session.id));
    request.setTarget(reader(target));
    request.setProgress(kj::heap<ProgressLine>("follow"));
    request.setDowntimeSeconds(options.downtimeMilliseconds / 1e3);
    request.setTimeoutSeconds(options.timeoutSeconds);
    auto departure = client.wait(untilSignal(client, request.send())).getDeparture();
    sessions.push_back({.session = session, .departure = kj::mv(departure)});
    advance(sessions.back());
  }

  void advance(Departing& one) {
    one.isAdvancing = true;
    one.advanced = one.advanced.then([&one] { return one.departure.advanceRequest().send().ignoreResult(); })
                       .then([&one] { one.isAdvancing = false; })
                       .eagerlyEvaluate([this, &one](kj::Exception&& exception) { hasTrouble(one, exception); });
  }

  void hasTrouble(Departing& one, const kj::Exception& exception) {
    if (one.problem.empty()) one.problem = printable(reasonOf(exception));
    troubled.fulfiller->fulfill();
  }

  auto sharing() { return sessions | std::views::filter(&Departing::sharesMemory); }

  // Keeps the machine until the target has the memory of all sessions once, or has refused it, and then holds those that share
  // memory with the machine. There may be none, until a program begins.
  void look() {
    if (holding == Holding::notYet && machine.isNearlyThere()) {
      machine.slow();
      holding = Holding::rounds;
    } else if (holding == Holding::rounds && std::ranges::none_of(sessions, &Departing::isAdvancing)) {
      if (pause == nullptr) pause = pauseGuest();
      if (departLate()) return;
      for (auto& one : sharing()) hold(one);
      holding = Holding::begun;
    } else if (holding == Holding::begun && std::ranges::all_of(sharing(), &Departing::isHeld)) {
      faultPoint("machine.held");
      machine.hasten();
      holding = Holding::done;
    }
  }

  // Programs that ask for a session from now on get it where the machine runs in the end.
  control::GuestPause::Client pauseGuest() {
    std::string guest = options.guest.empty() ? machine.name() : options.guest;
    for (auto& one : sharing()) guest = one.session.guest;
    auto request = client.node().pauseGuestRequest();
    request.setGuest(reader(guest));
    return client.wait(untilSignal(client, request.send())).getPause();
  }

  void endPause(bool hasMoved) {
    KJ_IF_MAYBE (begun, pause) {
      if (hasMoved) client.wait(begun->movedRequest().send().ignoreResult());
    }
    pause = nullptr;
  }

  // Programs that have begun meanwhile, unless somebody has said which sessions it is about. Whether there are any.
  bool departLate() {
    bool any = false;
    if (!options.sessions.empty()) return any;
    for (auto& session : sessionsNow()) {
      if (std::ranges::any_of(sessions, [&](const Departing& one) { return one.session.id == session.id; })) continue;
      depart(session);
      any = true;
    }
    return any;
  }

  void hold(Departing& one) {
    one.held = one.departure.holdRequest()
                   .send()
                   .ignoreResult()
                   .then([this, &one] {
                     one.isHeld = true;
                     one.watched = one.departure.watchRequest().send().ignoreResult().eagerlyEvaluate(
                         [this, &one](kj::Exception&& exception) { hasTrouble(one, exception); });
                   })
                   .eagerlyEvaluate([this, &one](kj::Exception&& exception) { hasTrouble(one, exception); });
  }

  // While the machine migrates. Whether it has moved, as far as its QEMU says.
  bool completes() {
    auto trouble = troubled.promise.fork();
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
      if (now == "trouble") fail(firstProblem());
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
    departLate();
    if (std::ranges::any_of(sharing(), [](const Departing& one) { return !one.isHeld; }))
      fail("it stopped before its programs could be held: begin its migration again, with less bandwidth");
    holding = Holding::done;
    faultPoint("machine.handing-over");
    requireAllHeld();
    isHandedOver = true;
    machine.handOver();
    for (auto& one : sessions)
      if (!one.sharesMemory()) advance(one);
  }

  // What the node has learned of its targets so far comes before its next reply.
  void requireAllHeld() {
    client.wait(untilSignal(client, client.node().listRequest().send().ignoreResult()));
    if (const std::string problem = firstProblem(); !problem.empty()) fail(problem);
  }

  std::string firstProblem() const {
    for (auto& one : sessions)
      if (!one.problem.empty()) return one.session.id + " cannot go: " + one.problem;
    return "";
  }

  // The machine's programs answer when it runs. If it runs where it was, because somebody has let it go on there, its sessions
  // stay.
  End leave() {
    faultPoint("machine.moved");
    for (auto& one : sessions) one.watched = kj::READY_NOW;
    auto all = kj::heapArrayBuilder<kj::Promise<void>>(sessions.size());
    for (auto& one : sessions) all.add(leave(one));
    bool isBack = false;
    auto back = runsAgain().then([this, &isBack] {
      isBack = true;
      return stay();
    });
    client.wait(kj::joinPromises(all.finish()).exclusiveJoin(kj::mv(back)));
    endPause(!isBack);
    for (auto& one : sessions) {
      if (one.hasLeft) continue;
      if (isBack)
        one.problem = "the machine runs at its source again";
      else if (!one.sharesMemory())
        moveAgain(one);
    }
    if (!isCompleted && std::ranges::none_of(sessions, &Departing::hasLeft)) {
      why = "its QEMU has ended when it had been let go, and none of its programs replies at the target";
      return End::ended;
    }
    why.clear();
    return End::moved;
  }

  // Those that share memory wait for the machine at the target.
  kj::Promise<void> stay() {
    auto all = kj::heapArrayBuilder<kj::Promise<void>>(sessions.size());
    for (auto& one : sessions)
      all.add(one.sharesMemory() ? one.departure.stayRequest().send().ignoreResult() : kj::Promise<void>(kj::READY_NOW));
    return kj::joinPromises(all.finish());
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

  kj::Promise<void> leave(Departing& one) {
    return one.advanced
        .then([&one] {
          if (!one.problem.empty()) fail(one.problem);
          return one.departure.leaveRequest().send();
        })
        .then([&one](capnp::Response<control::Departure::LeaveResults>&& left) {
          one.hasLeft = true;
          one.device = left.getSession().getDevice().cStr();
          one.heldSeconds = left.getReport().getGateSeconds();
        })
        .catch_([&one](kj::Exception&& exception) { one.problem = printable(reasonOf(exception)); });
  }

  // What went ahead may be lost with a connection that did not survive the machine's move. Its program goes on by the source's
  // GPU, so nothing has changed yet.
  void moveAgain(Departing& one) {
    one.departure = nullptr;
    auto request = client.node().migrateRequest();
    request.setSession(reader("id:" + one.session.id));
    request.setTarget(reader(target));
    request.setProgress(kj::heap<ProgressLine>("follow"));
    request.setDowntimeSeconds(options.downtimeMilliseconds / 1e3);
    request.setTimeoutSeconds(options.timeoutSeconds);
    auto moved = request.send().then([&one](capnp::Response<control::Node::MigrateResults>&& moved) {
      one.hasLeft = true;
      one.device = moved.getSession().getDevice().cStr();
      one.heldSeconds = moved.getReport().getGateSeconds();
    });
    client.wait(untilSignal(client, kj::mv(moved)).catch_([&one](kj::Exception&& exception) {
      one.problem += "; once more: " + printable(reasonOf(exception));
    }));
  }

  std::string lineOf(const Departing& one) const {
    const std::string who = one.session.id + " (" + printable(one.session.name) + ")";
    if (one.hasLeft)
      return fmt::format("{} runs on {} of {}; its program was held for {:.3f} s", who, one.device, target, one.heldSeconds);
    return one.sharesMemory() ? fmt::format("{} is not at {}: {}", who, target, one.problem)
                              : fmt::format("{} stays at the source, by the network: {}", who, one.problem);
  }

  json describe(End outcome) const {
    json list = json::array();
    for (auto& one : sessions)
      list.push_back({{"session", one.session.id},
                      {"name", one.session.name},
                      {"node", one.hasLeft ? json(target) : json(nullptr)},
                      {"problem", one.hasLeft ? json(nullptr) : json(one.problem)},
                      {"blackoutSeconds", one.heldSeconds}});
    return {{"machine", machine.name()},
            {"moved", outcome == End::moved},
            {"problem", why.empty() ? json(nullptr) : json(why)},
            {"sessions", list}};
  }

  NodeClient& client;
  const MachineOptions& options;
  const std::string target;
  Machine machine;
  std::deque<Departing> sessions;  // which stay in place
  Holding holding = Holding::notYet;
  bool isStopped = false;                        // before it is begun
  bool isBegun = false;                          // so QEMU's status is of this migration
  bool isHandedOver = false;                     // it may run at the target
  bool isCompleted = false;                      // it does
  kj::Maybe<control::GuestPause::Client> pause;  // from before they are held
  kj::PromiseFulfillerPair<void> troubled = kj::newPromiseAndFulfiller<void>();
  std::string why;  // it stays, or this was interrupted
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
