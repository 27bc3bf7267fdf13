// How the nodes of a graph hang together, and which node of another graph of the same shape is taken for which (cuGraphExecUpdate). An
// executable graph keeps that of the graph that it was made of, which may change or end. Plain values.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace vgpu::client {

class Graph;

struct Outline {
  struct Edge {
    uint32_t from;  // by its place among the nodes
    CUgraphEdgeData data;
  };
  struct Node {
    uint64_t handle;  // the program's
    CUgraphNodeType type;
    std::vector<Edge> before;    // in the order in which they were made
    std::vector<Outline> inner;  // the graph of a child's node; the bodies of a conditional node
  };

  explicit Outline(const Graph& graph);
  // Of a child's node, at any depth; nullptr if there is none.
  const Outline* findChild(uint64_t node) const;

  std::vector<Node> nodes;     // in the order in which they were made
  std::vector<uint32_t> ends;  // those behind which nothing comes, in the order in which they became such
};

// A node of an executable graph's, and the one that is taken for it.
struct OutlinePair {
  uint64_t now, wanted;
};
struct OutlineProblem {
  CUgraphExecUpdateResult result;
  uint64_t node = 0, from = 0;  // of the graph that is wanted: where it is another one
};

// Adds the pairs of all nodes, those inside of others too. Nothing if the graphs are of one shape; else the pairs mean nothing.
std::optional<OutlineProblem> pairByEdges(const Outline& now, const Outline& wanted, std::vector<OutlinePair>& pairs);
// The same of a child's graph, whose nodes must have been made in the same order (cuGraphExecChildGraphNodeSetParams).
std::optional<OutlineProblem> pairByOrder(const Outline& now, const Outline& wanted, std::vector<OutlinePair>& pairs);

}  // namespace vgpu::client
