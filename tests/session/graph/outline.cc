#include "intercept/session/graph/outline.h"

#include <doctest/doctest.h>

#include <map>
#include <string>

#include "../fake-session.h"
#include "intercept/session/graph/graph.h"

namespace vgpu::client {
namespace {

// A graph: "aBc" are nodes in creation order, B of another type than a and c; "ab cb" are edges from a and from c to b.
struct Drawn {
  Drawn(const std::string& letters, const std::string& edges) : graph(FakeSession::one().session.graphs.make()) {
    for (char letter : letters) {
      NodeWork work;
      if (letter < 'a') work = HostWork{};
      of[static_cast<char>(letter | 32)] = &graph->add(std::move(work), {});
    }
    for (size_t i = 0; i < edges.size(); i += 3) join(edges[i], edges[i + 1]);
  }
  void join(char from, char to) { CHECK(graph->addEdge(*of[from], *of[to], {}) == CUDA_SUCCESS); }
  void part(char from, char to) { CHECK(graph->removeEdge(*of[from], *of[to]) == CUDA_SUCCESS); }
  std::string nameOf(uint64_t handle) const {
    for (auto& [letter, node] : of)
      if (node->handle == handle) return {letter};
    return "-";
  }
  std::shared_ptr<Graph> graph;
  std::map<char, GraphNode*> of;
};

// The partners of a, b, c …; on a mismatch the result, the node, and the node at the other end of the edge.
std::string paired(const Drawn& now, const Drawn& wanted, decltype(pairByEdges)& pair = pairByEdges) {
  std::vector<OutlinePair> pairs;
  if (auto problem = pair(Outline(*now.graph), Outline(*wanted.graph), pairs))
    return std::to_string(problem->result) + wanted.nameOf(problem->node) + wanted.nameOf(problem->from);
  std::map<std::string, std::string> byName;
  for (auto& each : pairs) byName[now.nameOf(each.now)] = wanted.nameOf(each.wanted);
  std::string names;
  for (auto& each : byName) names += each.second;
  return names;
}

TEST_CASE("nodes are paired by their edges, in the order of the edges, whatever the order of the nodes") {
  Drawn now("abcd", "ab ac bd cd");
  CHECK(paired(now, {"dcba", "ab ac bd cd"}) == "abcd");
  CHECK(paired(now, {"abcd", "ab ac cd bd"}) == "acbd");
  CHECK(paired({"abcd", "ab cd"}, {"abcd", "ad cb"}) == "cbad");
  CHECK(paired({"abc", ""}, {"cba", ""}) == "cba");
}

TEST_CASE("end nodes are ordered by when they became end nodes") {
  Drawn once("abc", "ab");
  once.part('a', 'b');
  CHECK(paired({"abc", ""}, once) == "bca");
  Drawn twice("abc", "ac bc");
  twice.part('a', 'c');
  twice.join('a', 'c');
  CHECK(paired({"abc", "ac bc"}, twice) == "bac");
}

TEST_CASE("a mismatch of shape is reported as a driver reports it") {
  Drawn now("abcd", "ab ac bd cd");
  CHECK(paired(now, {"abc", "ab ac"}) == "2--");                 // another number of nodes
  CHECK(paired(now, {"abcd", "ab ac bd"}) == "2c-");             // one more end node
  CHECK(paired({"abc", ""}, {"abc", "ab"}) == "2--");            // one end node less
  CHECK(paired(now, {"abcd", "ab ac bd cd ad"}) == "2d-");       // another number of edges
  CHECK(paired({"abcd", "ac bc ad bd"}, {"abcd", "ac bc bd ad"}) == "2ca");
  CHECK(paired(now, {"aBcd", "ab ac bd cd"}) == "3b-");
  CHECK(paired({"abc", "ab bc"}, {"abc", "ab bc cb"}) == "2--");  // a cycle
}

TEST_CASE("nodes of a child graph are paired by their order") {
  Drawn now("abcd", "ab ac bd cd");
  CHECK(paired(now, {"abcd", "cd bd ac ab"}, pairByOrder) == "abcd");
  CHECK(paired(now, {"acbd", "ab ac bd cd"}, pairByOrder) == "acbd");
  CHECK(paired(now, {"dcba", "ab ac bd cd"}, pairByOrder) == "2d-");
}

}  // namespace
}  // namespace vgpu::client
