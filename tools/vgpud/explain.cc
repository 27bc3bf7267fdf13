#include "tools/vgpud/explain.h"

#include <fmt/format.h>

#include <set>

#include "tools/common/reason.h"
#include "vgpu/base/fail.h"

namespace vgpu::daemon {
namespace {

constexpr const char* whatIsShared = "shared objects";

// The sessions that are suspended together with it; adds the obstacles that follow from sharing.
std::set<std::string> groupOf(const Exchange& exchange, const std::string& session, std::vector<Obstacle>& obstacles) {
  std::set<std::string> group{session};
  KJ_IF_MAYBE (exception, kj::runCatchingExceptions([&] { group = exchange.groupOf(session); })) {
    obstacles.push_back({true, whatIsShared, reasonOf(*exception)});
    return group;
  }
  for (auto& line : exchange.sharedBy(session))
    obstacles.push_back({false, whatIsShared, line + "; sessions that share are suspended together"});
  return group;
}

// The report of a member's worker. `whose`: put before the names in it.
kj::Promise<Explanation> ask(Session& member, std::string whose) {
  KJ_IF_MAYBE (worker, member.worker) {
    auto asked = (*worker)->remote().explainRequest().send().then(
        [whose = std::move(whose)](capnp::Response<control::Worker::ExplainResults>&& found) {
          Explanation said{.obstacles = {}, .deviceBytes = found.getDeviceBytes()};
          for (auto obstacle : found.getObstacles())
            said.obstacles.push_back({obstacle.getRefuses(), whose + obstacle.getObject().cStr(), obstacle.getWhy().cStr()});
          return said;
        });
    return member.exclusively((*worker)->orExit(kj::mv(asked)));
  }
  fail("session " + member.id + " does not run: there is nothing to suspend");
}

// The report of another member of the group: what refuses a suspend of it refuses this one too.
kj::Promise<Explanation> askOther(Sessions& sessions, const std::string& id) {
  Session& member = sessions.get("id:" + id);
  std::string name = fmt::format("session {} ({}, pid {})", member.id, member.name, member.pid);
  Explanation refused;
  KJ_IF_MAYBE (exception, kj::runCatchingExceptions([&] { member.requireIdle(); })) {
    refused.obstacles.push_back({true, name, reasonOf(*exception)});
    return refused;
  }
  if (member.worker == nullptr) {
    refused.obstacles.push_back({true, name, "it is not running"});
    return refused;
  }
  return ask(member, name + ": ");
}

}  // namespace

kj::Promise<Explanation> explain(Sessions& sessions, Session& session) {
  session.requireIdle();
  Explanation found;
  auto group = groupOf(sessions.exchange, session.id, found.obstacles);
  auto all = kj::heapArrayBuilder<kj::Promise<Explanation>>(group.size());
  all.add(ask(session, ""));
  group.erase(session.id);
  for (auto& other : group) all.add(askOther(sessions, other));
  return kj::joinPromises(all.finish()).then([found = std::move(found)](kj::Array<Explanation>&& said) mutable {
    for (auto& one : said) {
      found.obstacles.insert(found.obstacles.end(), one.obstacles.begin(), one.obstacles.end());
      found.deviceBytes += one.deviceBytes;
    }
    return std::move(found);
  });
}

}  // namespace vgpu::daemon
