#include "intercept/session/graph/outline.h"

#include <algorithm>
#include <unordered_map>

#include "intercept/session/graph/edge-ports.h"
#include "intercept/session/graph/graph.h"

namespace vgpu::client {

Outline::Outline(const Graph& graph) {
  std::unordered_map<const GraphNode*, uint32_t> places;
  std::vector<const GraphNode*> ending;
  for (auto& node : graph.all()) places.emplace(node.get(), static_cast<uint32_t>(places.size()));
  std::vector<bool> isAwaited(places.size());
  for (auto& node : graph.all()) {
    Node& made = nodes.emplace_back(Node{node->handle, node->type(), {}, {}});
    for (auto& edge : node->before) {
      isAwaited[places[edge.from]] = true;
      made.before.push_back({places[edge.from], edge.data});
    }
    if (auto* child = std::get_if<ChildWork>(&node->work)) made.inner.emplace_back(*child->graph);
    if (auto* conditional = std::get_if<ConditionalWork>(&node->work))
      for (auto& body : conditional->bodies) made.inner.emplace_back(*body);
  }
  for (auto& node : graph.all())
    if (!isAwaited[places[node.get()]]) ending.push_back(node.get());
  std::ranges::stable_sort(ending, {}, &GraphNode::endsSince);
  for (auto* node : ending) ends.push_back(places[node]);
}

const Outline* Outline::findChild(uint64_t node) const {
  for (auto& each : nodes) {
    if (each.handle == node && each.type == CU_GRAPH_NODE_TYPE_GRAPH && !each.inner.empty()) return &each.inner.front();
    for (auto& inner : each.inner)
      if (auto* found = inner.findChild(node)) return found;
  }
  return nullptr;
}

namespace {

using Result = std::optional<OutlineProblem>;
OutlineProblem changed(uint64_t node = 0, uint64_t from = 0) { return {CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, node, from}; }

// Pairs nodes in the driver's order (tests/programs/conformance/golden/graph-updates.txt): it decides which difference is found first.
class Pairing {
 public:
  Pairing(const Outline& now, const Outline& wanted, std::vector<OutlinePair>& pairs)
      : now(now), wanted(wanted), pairs(pairs), ofNow(now.nodes.size(), none), ofWanted(wanted.nodes.size(), none) {}

  // Pairs the nodes on which no other depends, the last first; then their dependencies, and so on.
  Result byEdges() {
    if (now.nodes.size() != wanted.nodes.size() || wanted.ends.size() < now.ends.size()) return changed();
    for (size_t i = 0; i < wanted.ends.size(); ++i) {
      const uint32_t end = wanted.ends[wanted.ends.size() - 1 - i];
      if (i == now.ends.size()) return changed(wanted.nodes[end].handle);
      take(now.ends[now.ends.size() - 1 - i], end);
    }
    for (size_t i = 0; i < taken.size(); ++i) {
      auto &one = now.nodes[taken[i]], &other = wanted.nodes[ofNow[taken[i]]];
      if (auto problem = lookAt(one, other, pairByEdges)) return problem;
      if (auto problem = pairDependencies(one, other)) return problem;
    }
    // Otherwise the remaining nodes contain a cycle.
    return taken.size() == now.nodes.size() ? std::nullopt : Result(changed());
  }
  Result byOrder() {
    if (now.nodes.size() != wanted.nodes.size()) return changed();
    for (size_t i = 0; i < now.nodes.size(); ++i) {
      auto &one = now.nodes[i], &other = wanted.nodes[i];
      if (auto problem = lookAt(one, other, pairByOrder)) return problem;
      auto isThere = [&](auto& edge) {
        return std::ranges::any_of(other.before, [&](auto& each) { return each.from == edge.from && isSame(each.data, edge.data); });
      };
      if (one.before.size() != other.before.size() || !std::ranges::all_of(one.before, isThere)) return changed(other.handle);
    }
    return std::nullopt;
  }

 private:
  static constexpr uint32_t none = UINT32_MAX;

  void take(uint32_t one, uint32_t other) {
    ofNow[one] = other, ofWanted[other] = one;
    taken.push_back(one);
  }
  // Compares types and inner graphs.
  template <typename Inside>
  Result lookAt(const Outline::Node& one, const Outline::Node& other, Inside&& inside) {
    if (one.type != other.type) return OutlineProblem{CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED, other.handle};
    if (one.inner.size() != other.inner.size()) return OutlineProblem{CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED, other.handle};
    pairs.push_back({one.handle, other.handle});
    for (size_t i = 0; i < one.inner.size(); ++i)
      if (auto problem = inside(one.inner[i], other.inner[i], pairs)) return problem;
    return std::nullopt;
  }
  Result pairDependencies(const Outline::Node& one, const Outline::Node& other) {
    if (one.before.size() != other.before.size()) return changed(other.handle);
    for (size_t i = 0; i < one.before.size(); ++i) {
      const auto& [from, data] = one.before[i];
      const auto& [otherFrom, otherData] = other.before[i];
      const bool isFree = ofNow[from] == none && ofWanted[otherFrom] == none;
      if (!isSame(data, otherData) || !(isFree || ofNow[from] == otherFrom)) return changed(other.handle, wanted.nodes[otherFrom].handle);
      if (isFree) take(from, otherFrom);
    }
    return std::nullopt;
  }

  const Outline &now, &wanted;
  std::vector<OutlinePair>& pairs;
  std::vector<uint32_t> ofNow, ofWanted;  // index of the paired node in the other graph
  std::vector<uint32_t> taken;            // indices in `now`, in the order of pairing
};

}  // namespace

std::optional<OutlineProblem> pairByEdges(const Outline& now, const Outline& wanted, std::vector<OutlinePair>& pairs) {
  return Pairing(now, wanted, pairs).byEdges();
}

std::optional<OutlineProblem> pairByOrder(const Outline& now, const Outline& wanted, std::vector<OutlinePair>& pairs) {
  return Pairing(now, wanted, pairs).byOrder();
}

}  // namespace vgpu::client
