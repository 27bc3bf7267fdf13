// A graph as the program builds it: data of the program's process alone. The worker knows executable graphs only (executable.h), so
// building, reading and capturing a graph sends nothing.
//
// As CUDA says, a graph is not to be used by two threads at a time. All of it stays in the program over a suspend.
#pragma once

#include <cuda.h>

#include <memory>
#include <set>
#include <vector>

#include "intercept/session/graph/conditions.h"
#include "intercept/session/graph/graphs.h"
#include "intercept/session/graph/node-work.h"
#include "intercept/session/graph/user-objects.h"

namespace vgpu::client {

struct GraphEdge {
  GraphNode* from;
  CUgraphEdgeData data{};
};

struct GraphNode {
  uint64_t handle = 0;  // the program's
  Graph* graph = nullptr;
  NodeWork work;
  std::vector<GraphEdge> before;  // what it depends on, each node once
  uint64_t origin = 0;            // the handle of the node of which this is the copy
  uint64_t endsSince = 0;         // a larger number the later nothing came behind it any more

  CUgraphNodeType type() const { return typeOf(work); }
  bool isDeviceUpdatable() const { return deviceNodeOf(work) != nullptr; }
  std::vector<GraphEdge> after() const;  // what depends on it
};

class Graph : public std::enable_shared_from_this<Graph> {
 public:
  // Without `conditions` of another graph, in which this is the body of a node, it has its own.
  explicit Graph(Graphs& table, std::shared_ptr<Conditions> conditions = nullptr)
      : isBody(conditions != nullptr),
        conditions(isBody ? std::move(conditions) : std::make_shared<Conditions>()),
        table(table) {}
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  uint64_t handle = 0;  // the program's; 0: it has none, as the copy in a child node before it is asked for
  UserReferences held;  // of the program's objects
  const bool isBody;    // of a conditional node, with which it ends
  bool isMoved = false;  // into a child's node, with which it ends
  const std::shared_ptr<Conditions> conditions;

  // CUDA_ERROR_NOT_SUPPORTED if the graph cannot have such a node: bodies of conditional nodes have no memory of graphs. What
  // else they cannot run is refused when they are instantiated. CUDA_ERROR_INVALID_VALUE for a second free of memory.
  CUresult admits(const NodeWork& work) const;
  // In the order in which they were made.
  const std::vector<std::unique_ptr<GraphNode>>& all() const { return nodes; }
  // As a program lists them: all, and those that depend on none.
  std::vector<GraphEdge> listed() const;
  std::vector<GraphEdge> roots() const;
  GraphNode& add(NodeWork work, std::vector<GraphEdge> before);
  // With its edges.
  void remove(GraphNode& node);
  // CUDA_ERROR_INVALID_VALUE if there is such an edge, or for remove() none.
  CUresult addEdge(GraphNode& from, GraphNode& to, const CUgraphEdgeData& data);
  CUresult removeEdge(GraphNode& from, GraphNode& to);
  // A copy, nodes of child graphs included. Without a handle.
  std::shared_ptr<Graph> clone() const;
  // The program's handle of one that something else holds.
  uint64_t lent() { return table.lend(*this); }
  // Not if it has nodes that allocate or free memory, or conditional ones, or such as kernels may change, or ends with a node.
  bool canBeCopied() const;
  // Whether the other is this one, or in it, at any depth.
  bool has(const Graph& other) const;
  // Every node behind those that it depends on, else in the order of making. Empty if there is a cycle (or no node).
  std::vector<GraphNode*> ordered() const;

 private:
  // What came behind a node does not any more.
  void noteEnd(GraphNode& node);

  Graphs& table;
  std::vector<std::unique_ptr<GraphNode>> nodes;
  uint64_t lastEnd = 0;
  std::set<const GraphMemory*> freed;  // by nodes, which cannot be removed
};

}  // namespace vgpu::client
