// evacuate: moves every session of a node elsewhere while its program runs.
#include <fmt/format.h>
#include <kj/debug.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <thread>

#include "tools/common/node-client.h"
#include "tools/common/printable.h"
#include "tools/common/reason.h"
#include "tools/vgpuctl/commands.h"
#include "tools/vgpuctl/node-survey.h"
#include "tools/vgpuctl/progress-line.h"
#include "tools/vgpuctl/session-info.h"
#include "vgpu/control/text.h"

namespace vgpu::ctl {
namespace {

using nlohmann::json;

// The time during which launches are counted.
constexpr std::chrono::milliseconds observation{300};
constexpr std::chrono::seconds surveyLimit{5};

struct Leaving {
  std::string id, name;
  bool relayed;
  uint64_t launches;  // during the observation
};

std::map<std::string, uint64_t> launchesOf(NodeClient& client) {
  auto listed = client.wait(client.node().listRequest().send());
  std::map<std::string, uint64_t> launches;
  for (auto session : listed.getSessions()) launches[session.getId()] = session.getLaunches().getAll();
  return launches;
}

// The running sessions, the most idle first, so that these have left before the sessions whose programs are held longest.
std::vector<Leaving> leavingFrom(NodeClient& client) {
  auto before = launchesOf(client);
  std::this_thread::sleep_for(observation);
  auto listed = client.wait(client.node().listRequest().send());
  std::vector<Leaving> all;
  for (auto session : listed.getSessions()) {
    if (session.getState() != control::State::RUNNING) continue;
    all.push_back(
        {session.getId(), session.getName(), session.getRelayed(), session.getLaunches().getAll() - before[session.getId()]});
  }
  std::ranges::stable_sort(all, {}, &Leaving::launches);
  return all;
}

struct Target {
  std::string name;
  NodeAddress address;
  uint64_t freeBytes;
};

std::vector<Target> targetsOf(const EvacuateOptions& options) {
  if (!options.target.empty()) return {{options.target, resolveNode(options.target), 0}};
  std::vector<Target> targets;
  for (const NodeState& state : surveyNodes(surveyLimit)) {
    if (std::string why = whyLeftOut(state); !why.empty()) {
      fmt::print(stderr, "vgpuctl: node {} is skipped: {}\n", state.node.name, printable(why));
      continue;
    }
    targets.push_back({state.node.name, resolveNode(state.node.address),
                       std::accumulate(state.freeBytes.begin(), state.freeBytes.end(), uint64_t{0})});
  }
  return targets;
}

struct Outcome {
  std::string node, problem;  // the node that has it now; why it could not move
  double heldSeconds = 0;
};

// Moves it to the first node that accepts it, those with most free memory first; a session that one node refuses may fit another.
Outcome moveOne(NodeClient& client, const Leaving& session, std::vector<Target>& targets, const EvacuateOptions& options) {
  std::ranges::stable_sort(targets, std::greater(), &Target::freeBytes);
  Outcome outcome;
  for (Target& target : targets) {
    auto request = client.node().migrateRequest();
    const std::string where = target.address.remote ? target.address.remote->text() : target.address.directory;
    request.setSession(reader(session.id));
    request.setTarget(reader(where));
    request.setDowntimeSeconds(options.downtimeMilliseconds / 1e3);
    request.setTimeoutSeconds(options.timeoutSeconds);
    request.setProgress(kj::heap<ProgressLine>("evacuate"));
    auto caught = kj::runCatchingExceptions([&] {
      auto answer = client.wait(request.send());
      outcome = {target.name, "", answer.getReport().getGateSeconds()};
      target.freeBytes -= std::min<uint64_t>(target.freeBytes, answer.getReport().getDeviceBytes());
    });
    KJ_IF_MAYBE (exception, caught) {
      outcome.problem += (outcome.problem.empty() ? "" : "; ") + target.name + ": " + reasonOf(*exception);
    }
    if (!outcome.node.empty()) return outcome;
  }
  if (targets.empty()) outcome.problem = "no node that could take it answers";
  return outcome;
}

}  // namespace

int evacuateNode(const NodeAddress& node, const EvacuateOptions& options) {
  auto targets = targetsOf(options);  // before an event loop exists, because a forked process asks each node
  NodeClient client(node);
  json report = json::array();
  bool allMoved = true;
  for (const Leaving& session : leavingFrom(client)) {
    Outcome outcome = moveOne(client, session, targets, options);
    allMoved &= !outcome.node.empty();
    report.push_back({{"session", session.id},
                      {"name", session.name},
                      {"node", outcome.node.empty() ? json(nullptr) : json(outcome.node)},
                      {"problem", outcome.problem.empty() ? json(nullptr) : json(outcome.problem)},
                      {"blackoutSeconds", outcome.heldSeconds}});
    if (options.json) continue;
    if (outcome.node.empty())
      fmt::print("{} ({}) stays: {}\n", session.id, printable(session.name), printable(outcome.problem));
    else
      fmt::print("{} ({}) runs on {}; its program was held for {:.3f} s\n", session.id, printable(session.name), outcome.node,
                 outcome.heldSeconds);
  }
  if (options.json) printJson(report);
  return allMoved ? 0 : 1;
}

}  // namespace vgpu::ctl
