// nodes, and the choice of a node for `--node any`.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <numeric>

#include "tools/common/printable.h"
#include "tools/vgpuctl/commands.h"
#include "tools/vgpuctl/node-survey.h"
#include "tools/vgpuctl/progress-line.h"
#include "tools/vgpuctl/session-info.h"
#include "vgpu/base/fail.h"

namespace vgpu::ctl {
namespace {

using nlohmann::json;

constexpr std::chrono::seconds usualLimit{5};

uint64_t sum(const std::vector<uint64_t>& all) { return std::accumulate(all.begin(), all.end(), uint64_t{0}); }

json toJson(const NodeState& state) {
  json gpus = json::array();
  for (size_t i = 0; i < state.memoryBytes.size(); ++i)
    gpus.push_back({{"memoryBytes", state.memoryBytes[i]}, {"freeBytes", state.freeBytes[i]}});
  return {{"name", state.node.name},
          {"address", state.node.address},
          {"problem", state.problem.empty() ? json(nullptr) : json(state.problem)},
          {"device", state.device},
          {"gpus", gpus},
          {"sessions", state.sessions},
          {"running", state.running},
          {"ending", state.isEnding}};
}

std::string summaryOf(const NodeState& state) {
  size_t gpus = state.memoryBytes.size();
  return fmt::format("{} GPU{}, {} of {} free, {} session{} running", gpus, gpus == 1 ? "" : "s",
                     humanBytes(sum(state.freeBytes)), humanBytes(sum(state.memoryBytes)), state.running,
                     state.running == 1 ? "" : "s");
}

}  // namespace

int listNodes(unsigned seconds, bool asJson) {
  auto states = surveyNodes(std::chrono::seconds(seconds));
  if (asJson) {
    json all = json::array();
    for (const NodeState& state : states) all.push_back(toJson(state));
    printJson(all);
    return 0;
  }
  constexpr const char* row = "{:<12} {:<28} {:>4} {:>24} {:>16}  {}\n";
  fmt::print(row, "NAME", "ADDRESS", "GPUS", "FREE MEMORY", "RUNNING SESSIONS", "DEVICE");
  for (const NodeState& state : states) {
    if (!state.problem.empty()) {
      fmt::print("{:<12} {:<28} does not answer: {}\n", state.node.name, state.node.address, printable(state.problem));
      continue;
    }
    fmt::print(row, state.node.name, state.node.address, state.memoryBytes.size(),
               fmt::format("{} of {}", humanBytes(sum(state.freeBytes)), humanBytes(sum(state.memoryBytes))),
               fmt::format("{} of {}", state.running, state.sessions), state.isEnding ? "it is shutting down" : printable(state.device));
  }
  return 0;
}

NodeAddress chooseNode(unsigned gpus) {
  auto states = surveyNodes(usualLimit);
  for (const NodeState& state : states) {
    if (std::string why = whyLeftOut(state); !why.empty())
      fmt::print(stderr, "vgpuctl: node {} is skipped: {}\n", state.node.name, printable(why));
  }
  const NodeState* best = bestNode(states, gpus);
  if (best == nullptr)
    fail(fmt::format("no node of {} has {} GPU{} for this program: `vgpuctl nodes` shows what each has", knownNodesFile(), gpus,
                     gpus == 1 ? "" : "s"));
  fmt::print(stderr, "vgpuctl: the program runs on {} ({})\n", best->node.name, summaryOf(*best));
  return resolveNode(best->node.address);
}

}  // namespace vgpu::ctl
