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
// Until the machine is at its target every failure leaves all where they were.
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

// Of the sessions that share memory with the machine, while it migrates.
enum class Holding {
  notYet,  // it is far from being handed over
  rounds,  // it is kept from that, while their memory goes ahead
  begun,   // their programs are being held
  done,    // they are held, or there are none
};
constexpr auto lookInterval = 10 * kj::MILLISECONDS;

enum class End { moved, stayed, ended };

class Following {
 public:
  Following(NodeClient& client, const MachineOptions& options, std::string target)
      : client(client), options(options), target(std::move(target)), machine(client, options) {
    machine.holdBeforeHandover();
  }

  // One migration, from its begin to its end.
  End follow() {
    sessions.clear();
    why.clear();
    troubled = kj::newPromiseAndFulfiller<void>();
    holding = Holding::notYet;
    pause = nullptr;
    if (options.uri.empty() && !begins()) return End::ended;
    bool moved = false;
    auto caught = kj::runCatchingExceptions([&] {
      const auto now = sessionsNow();
      const bool anyShares = std::ranges::any_of(now, &MachineSession::sharesMemory);
      if (anyShares && options.uri.empty()) machine.slow();  // it may be handed over before the target is ready
      for (auto& session : now) depart(session);
      if (anyShares && !machine.isNearlyThere()) machine.hasten();
      if (!options.uri.empty()) machine.monitor().run("migrate", {{"uri", options.uri}});
      moved = completes();
    });
    KJ_IF_MAYBE (exception, caught) {
      machine.cancel();
      sessions.clear();
      why = printable(reasonOf(*exception));
    }
    if (!moved) {
      for (auto& one : sessions) {
        for (auto* work : {&one.advanced, &one.held, &one.watched}) *work = kj::READY_NOW;
        one.departure = nullptr;
      }
      pause = nullptr;
      return machine.monitor().hasEnded() ? End::ended : End::stayed;
    }
    leave();
    return End::moved;
  }

  // Whether everything is at the target.
  bool report(End outcome) {
    if (options.json) {
      printJson(describe(outcome));
    } else if (outcome != End::moved) {
      fmt::print(stderr, "vgpuctl: '{}' stays, and all of its sessions: {}\n", printable(machine.name()), why);
    } else {
      fmt::print("'{}' has moved with {} sessions\n", printable(machine.name()), sessions.size());
      for (auto& one : sessions) fmt::print("{}\n", lineOf(one));
    }
    std::fflush(stdout);
    return outcome == End::moved && std::ranges::all_of(sessions, &Departing::hasLeft);
  }

 private:
  std::string next() { return client.wait(untilSignal(client, machine.nextStep())); }

  // Somebody else begins it.
  bool begins() {
    for (;;) {
      const std::string step = next();
      if (step == "setup" || step == "active") return true;
      if (step != "ended") continue;
      why = "its QEMU has ended";
      return false;
    }
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

  // What is to be done for the sessions that share memory with the machine.
  void look() {
    const auto sharing = [this] { return sessions | std::views::filter(&Departing::sharesMemory); };
    if (holding == Holding::notYet && machine.isNearlyThere()) {
      machine.slow();
      holding = Holding::rounds;
    } else if (holding == Holding::rounds && std::ranges::none_of(sharing(), &Departing::isAdvancing)) {
      if (pause == nullptr) pause = pauseGuest(sharing().front().session.guest);
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
  control::GuestPause::Client pauseGuest(const std::string& guest) {
    auto request = client.node().pauseGuestRequest();
    request.setGuest(reader(guest));
    return client.wait(untilSignal(client, request.send())).getPause();
  }

  void endPause(bool hasMoved) {
    KJ_IF_MAYBE (begun, pause) {
      if (hasMoved) client.wait(untilSignal(client, begun->movedRequest().send().ignoreResult()));
    }
    pause = nullptr;
  }

  // Programs that have begun meanwhile. Whether there are any.
  bool departLate() {
    bool any = false;
    for (auto& session : sessionsNow()) {
      const bool isKnown = std::ranges::any_of(sessions, [&](const Departing& one) { return one.session.id == session.id; });
      if (isKnown || !session.sharesMemory()) continue;
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

  // While the machine migrates.
  bool completes() {
    auto trouble = troubled.promise.fork();
    bool isHandedOver = false;
    if (std::ranges::none_of(sessions, &Departing::sharesMemory)) holding = Holding::done;
    auto step = machine.nextStep().fork();
    for (;;) {
      auto next = step.addBranch();
      if (!isHandedOver) next = next.exclusiveJoin(trouble.addBranch().then([] { return std::string("trouble"); }));
      if (holding != Holding::done)
        next = next.exclusiveJoin(
            client.events().provider->getTimer().afterDelay(lookInterval).then([] { return std::string("look"); }));
      const std::string now = client.wait(untilSignal(client, kj::mv(next)));
      if (now == "trouble") fail(firstProblem());
      if (now == "look") {
        look();
        continue;
      }
      if (now == "completed") return true;  // what comes after it is leave()'s
      step = machine.nextStep().fork();
      if (now == "pre-switchover") {
        if (holding != Holding::done) fail("it stopped before its programs could be held: give its migration less bandwidth");
        faultPoint("machine.handing-over");
        requireAllHeld();
        // Its processors stand still. Who has not come to the target yet comes when they go on, or moves then from the beginning.
        isHandedOver = true;
        machine.handOver();
        for (auto& one : sessions)
          if (!one.sharesMemory()) advance(one);
      } else if (now == "failed" || now == "cancelled" || now == "ended") {
        why = now == "cancelled" ? "its migration was cancelled" : machine.reason();
        return false;
      }
    }
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
  void leave() {
    faultPoint("machine.moved");
    for (auto& one : sessions) one.watched = kj::READY_NOW;
    auto all = kj::heapArrayBuilder<kj::Promise<void>>(sessions.size());
    for (auto& one : sessions) all.add(leave(one));
    bool isBack = false;
    auto back = runsAgain().then([this, &isBack] {
      isBack = true;
      return stay();
    });
    client.wait(untilSignal(client, kj::joinPromises(all.finish()).exclusiveJoin(kj::mv(back))));
    endPause(!isBack);
    for (auto& one : sessions) {
      if (one.hasLeft) continue;
      if (isBack)
        one.problem = "the machine runs at its source again";
      else if (!one.sharesMemory())
        moveAgain(one);
    }
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
      if (step == "runs") return kj::READY_NOW;
      if (step == "ended") return kj::NEVER_DONE;
      return runsAgain();
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
    client.wait(untilSignal(client, moved.catch_([&one](kj::Exception&& exception) {
      one.problem += "; once more: " + printable(reasonOf(exception));
    })));
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
  kj::Maybe<control::GuestPause::Client> pause;  // from before they are held
  kj::PromiseFulfillerPair<void> troubled = kj::newPromiseAndFulfiller<void>();
  std::string why;  // it stays
};

}  // namespace

int followMachine(const NodeAddress& node, const MachineOptions& options) {
  NodeAddress target = resolveNode(options.target);
  takeSignals();
  NodeClient client(node);
  Following following(client, options, target.remote ? target.remote->text() : target.directory);
  for (;;) {
    const End outcome = following.follow();
    const bool isAllThere = following.report(outcome);
    if (outcome != End::stayed || !options.stays) return isAllThere ? 0 : 1;
  }
}

}  // namespace vgpu::ctl
