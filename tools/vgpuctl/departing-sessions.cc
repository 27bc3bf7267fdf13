#include "tools/vgpuctl/departing-sessions.h"

#include <fmt/format.h>

#include "tools/common/printable.h"
#include "tools/common/reason.h"
#include "tools/vgpuctl/progress-line.h"
#include "vgpu/base/fail.h"
#include "vgpu/control/text.h"

namespace vgpu::ctl {

using nlohmann::json;

void DepartingSessions::reset() {
  all.clear();
  pause = nullptr;
  troubled = kj::newPromiseAndFulfiller<void>();
}

void DepartingSessions::add(const MachineSession& session) {
  auto request = client.node().departRequest();
  request.setSession(reader("id:" + session.id));
  request.setTarget(reader(target));
  request.setProgress(kj::heap<ProgressLine>("follow"));
  request.setDowntimeSeconds(options.downtimeMilliseconds / 1e3);
  request.setTimeoutSeconds(options.timeoutSeconds);
  auto departure = client.wait(untilSignal(client, request.send())).getDeparture();
  all.push_back({.session = session, .departure = kj::mv(departure)});
  advance(all.back());
}

bool DepartingSessions::addLate(const std::string& machine) {
  bool any = false;
  if (!options.sessions.empty()) return any;
  for (auto& session : sessionsOf(client, options, machine)) {
    if (std::ranges::any_of(all, [&](const Departing& one) { return one.session.id == session.id; })) continue;
    add(session);
    any = true;
  }
  return any;
}

void DepartingSessions::advance(Departing& one) {
  one.isAdvancing = true;
  one.advanced = one.advanced.then([&one] { return one.departure.advanceRequest().send().ignoreResult(); })
                     .then([&one] { one.isAdvancing = false; })
                     .eagerlyEvaluate([this, &one](kj::Exception&& exception) { hasTrouble(one, exception); });
}

void DepartingSessions::hasTrouble(Departing& one, const kj::Exception& exception) {
  if (one.problem.empty()) one.problem = printable(reasonOf(exception));
  troubled.fulfiller->fulfill();
}

std::string DepartingSessions::firstProblem() const {
  for (auto& one : all)
    if (!one.problem.empty()) return one.session.id + " cannot move: " + one.problem;
  return "";
}

void DepartingSessions::pauseGuest(const std::string& machine) {
  if (pause != nullptr) return;
  std::string guest = options.guest.empty() ? machine : options.guest;
  for (auto& one : sharing()) guest = one.session.guest;
  auto request = client.node().pauseGuestRequest();
  request.setGuest(reader(guest));
  pause = client.wait(untilSignal(client, request.send())).getPause();
}

void DepartingSessions::hold() {
  for (auto& one : sharing()) hold(one);
}

void DepartingSessions::hold(Departing& one) {
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

// The reply to this call arrives after everything that the node has learned of its targets so far.
void DepartingSessions::requireReady() {
  client.wait(untilSignal(client, client.node().listRequest().send().ignoreResult()));
  if (const std::string problem = firstProblem(); !problem.empty()) fail(problem);
}

void DepartingSessions::advanceOthers() {
  for (auto& one : all)
    if (!one.sharesMemory()) advance(one);
}

kj::Promise<void> DepartingSessions::leave() {
  for (auto& one : all) one.watched = kj::READY_NOW;
  auto left = kj::heapArrayBuilder<kj::Promise<void>>(all.size());
  for (auto& one : all) left.add(leave(one));
  return kj::joinPromises(left.finish());
}

kj::Promise<void> DepartingSessions::leave(Departing& one) {
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

// Sessions that share memory with the machine wait for it at the target.
kj::Promise<void> DepartingSessions::stay() {
  auto stayed = kj::heapArrayBuilder<kj::Promise<void>>(all.size());
  for (auto& one : all)
    stayed.add(one.sharesMemory() ? one.departure.stayRequest().send().ignoreResult() : kj::Promise<void>(kj::READY_NOW));
  return kj::joinPromises(stayed.finish());
}

void DepartingSessions::conclude(bool isBack) {
  KJ_IF_MAYBE (begun, pause) {
    if (!isBack) client.wait(begun->movedRequest().send().ignoreResult());
  }
  pause = nullptr;
  for (auto& one : all) {
    if (one.hasLeft) continue;
    if (isBack)
      one.problem = "the machine runs on its source host again";
    else if (!one.sharesMemory())
      moveAgain(one);
  }
}

// What was sent ahead may be lost with a connection that did not survive the machine's move. The program still uses the source's GPU, so
// nothing has changed yet.
void DepartingSessions::moveAgain(Departing& one) {
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
    one.problem += "; second attempt: " + printable(reasonOf(exception));
  }));
}

void DepartingSessions::letGo() {
  for (auto& one : all) {
    for (auto* work : {&one.advanced, &one.held, &one.watched}) *work = kj::READY_NOW;
    one.departure = nullptr;
  }
  pause = nullptr;
}

std::vector<std::string> DepartingSessions::lines() const {
  std::vector<std::string> texts;
  for (auto& one : all) texts.push_back(lineOf(one));
  return texts;
}

std::string DepartingSessions::lineOf(const Departing& one) const {
  const std::string who = one.session.id + " (" + printable(one.session.name) + ")";
  if (one.hasLeft)
    return fmt::format("{} runs on {} of {}; its program was held for {:.3f} s", who, one.device, target, one.heldSeconds);
  return one.sharesMemory() ? fmt::format("{} did not reach {}: {}", who, target, one.problem)
                            : fmt::format("{} stays on the source's GPU, which its program uses over the network: {}", who, one.problem);
}

json DepartingSessions::describe() const {
  json list = json::array();
  for (auto& one : all)
    list.push_back({{"session", one.session.id},
                    {"name", one.session.name},
                    {"node", one.hasLeft ? json(target) : json(nullptr)},
                    {"problem", one.hasLeft ? json(nullptr) : json(one.problem)},
                    {"blackoutSeconds", one.heldSeconds}});
  return list;
}

}  // namespace vgpu::ctl
