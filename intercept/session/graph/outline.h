// The structure of a graph, and the pairing of its nodes with those of another graph of the same shape (cuGraphExecUpdate). An executable
// graph keeps that of the graph from which it was made, which may change or end. Plain values.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace vgpu::client {

class Graph;

struct Outline {
  struct Edge {
    uint32_t from;  // index among the nodes
    CUgraphEdgeData data;
  };
  struct Node {
    uint64_t handle;  // the program's
    CUgraphNodeType type;
    std::vector<Edge> before;    // in the order of creation
    std::vector<Outline> inner;  // the graph of a child node; the bodies of a conditional node
  };

  explicit Outline(const Graph& graph);
  // The outline of a child node's graph, at any depth; nullptr if there is none.
  const Outline* findChild(uint64_t node) const;

  std::vector<Node> nodes;     // in the order of creation
  std::vector<uint32_t> ends;  // nodes on which no other depends, in the order in which they became such
};

// A node of an executable graph, and the node of the other graph that is paired with it.
struct OutlinePair {
  uint64_t now, wanted;
};
struct OutlineProblem {
  CUgraphExecUpdateResult result;
  uint64_t node = 0, from = 0;  // of the wanted graph: the node, and an edge's other end, where it differs
};

// Adds the pairs of all nodes, including inner ones. Returns nothing if the graphs have the same shape; else the pairs are meaningless.
std::optional<OutlineProblem> pairByEdges(const Outline& now, const Outline& wanted, std::vector<OutlinePair>& pairs);
// The same for a child graph, whose nodes must have been created in the same order (cuGraphExecChildGraphNodeSetParams).
std::optional<OutlineProblem> pairByOrder(const Outline& now, const Outline& wanted, std::vector<OutlinePair>& pairs);

}  // namespace vgpu::client
