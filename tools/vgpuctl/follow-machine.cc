// machine follow: the sessions of a virtual machine's programs go to another node with it.
//
// Their programs reach the node by the machine's network, and a session's two relays lose nothing and repeat nothing, whatever
// the connection does (docs/remote.md). So session and machine need no common moment: the session's memory goes ahead while the
// machine's does, and it is cut over when the machine runs at its target, because its program must be asked. Until then every
// failure leaves both where they were.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "tools/common/printable.h"
#include "tools/common/reason.h"
#include "tools/vgpuctl/machine.h"
#include "tools/vgpuctl/progress-line.h"
#include "tools/vgpuctl/session-info.h"
#include "vgpu/base/fail.h"
#include "vgpu/control/text.h"

namespace vgpu::ctl {
namespace {

using nlohmann::json;

struct Departing {
  MachineSession session;
  control::Departure::Client departure;
  kj::Promise<void> advanced = kj::READY_NOW;
  bool hasLeft = false;
  std::string device, problem;
  double heldSeconds = 0;
};

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
    if (options.uri.empty() && !begins()) return End::ended;
    bool moved = false;
    auto caught = kj::runCatchingExceptions([&] {
      depart();
      if (!options.uri.empty()) machine.monitor().run("migrate", {{"uri", options.uri}});
      moved = completes();
    });
    KJ_IF_MAYBE (exception, caught) {
      machine.cancel();
      sessions.clear();
      why = printable(reasonOf(*exception));
    }
    if (!moved) return machine.monitor().hasEnded() ? End::ended : End::stayed;
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

  // The target takes all sessions, or none goes, and neither does the machine.
  void depart() {
    for (auto& session : sessionsOf(client, options)) {
      auto request = client.node().departRequest();
      request.setSession(reader("id:" + session.id));
      request.setTarget(reader(target));
      request.setProgress(kj::heap<ProgressLine>("follow"));
      request.setDowntimeSeconds(options.downtimeMilliseconds / 1e3);
      request.setTimeoutSeconds(options.timeoutSeconds);
      auto departure = client.wait(untilSignal(client, request.send())).getDeparture();
      sessions.push_back({.session = session, .departure = kj::mv(departure)});
    }
    for (auto& one : sessions) advance(one);
  }

  void advance(Departing& one) {
    one.advanced = one.advanced.then([&one] { return one.departure.advanceRequest().send().ignoreResult(); })
                       .eagerlyEvaluate([this, &one](kj::Exception&& exception) {
                         if (one.problem.empty()) one.problem = printable(reasonOf(exception));
                         troubled.fulfiller->fulfill();
                       });
  }

  // While the machine migrates.
  bool completes() {
    auto trouble = troubled.promise.fork();
    bool isHandedOver = false;
    for (;;) {
      auto step = machine.nextStep();
      if (!isHandedOver) step = step.exclusiveJoin(trouble.addBranch().then([] { return std::string("trouble"); }));
      const std::string now = client.wait(untilSignal(client, kj::mv(step)));
      if (now == "completed") return true;
      if (now == "trouble") fail(firstProblem());
      if (now == "pre-switchover") {
        // Its processors stand still. Who has not come to the target yet comes when they go on, or moves then from the beginning.
        isHandedOver = true;
        machine.handOver();
        for (auto& one : sessions) advance(one);
      } else if (now == "failed" || now == "cancelled" || now == "ended") {
        why = now == "cancelled" ? "its migration was cancelled" : machine.reason();
        return false;
      }
    }
  }

  std::string firstProblem() const {
    for (auto& one : sessions)
      if (!one.problem.empty()) return one.session.id + " cannot go: " + one.problem;
    return "";
  }

  // The machine's programs answer when it runs. If it runs where it was, because somebody has let it go on there, its sessions
  // stay.
  void leave() {
    auto all = kj::heapArrayBuilder<kj::Promise<void>>(sessions.size());
    for (auto& one : sessions) all.add(leave(one));
    bool isBack = false;
    auto back = runsAgain().then([&isBack] { isBack = true; });
    client.wait(untilSignal(client, kj::joinPromises(all.finish()).exclusiveJoin(kj::mv(back))));
    for (auto& one : sessions) {
      if (one.hasLeft) continue;
      if (isBack)
        one.problem = "the machine runs at its source again";
      else
        moveAgain(one);
    }
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
    return fmt::format("{} stays at the source, by the network: {}", who, one.problem);
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
