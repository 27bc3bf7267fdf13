// A graph as the program builds it: data of the program's process only. The worker knows only executable graphs (executable.h), so
// building, querying and capturing a graph sends no frames.
//
// As in CUDA, two threads must not use a graph at the same time. Stays in the program over a suspend.
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
  std::vector<GraphEdge> before;  // its dependencies, each node once
  uint64_t origin = 0;            // the handle of the node of which this is a copy
  uint64_t endsSince = 0;         // grows with the time at which the last dependent node was removed

  CUgraphNodeType type() const { return typeOf(work); }
  bool isDeviceUpdatable() const { return deviceNodeOf(work) != nullptr; }
  std::vector<GraphEdge> after() const;  // the nodes that depend on it
};

class Graph : public std::enable_shared_from_this<Graph> {
 public:
  // With `conditions`, this is the body of a conditional node of the graph that has them; else it has its own.
  explicit Graph(Graphs& table, std::shared_ptr<Conditions> conditions = nullptr)
      : isBody(conditions != nullptr),
        conditions(isBody ? std::move(conditions) : std::make_shared<Conditions>()),
        table(table) {}
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  uint64_t handle = 0;  // the program's; 0: none, as for a child node's copy before the program asks for it
  UserReferences held;  // user objects of the program
  const bool isBody;    // of a conditional node, with which it ends
  bool isMoved = false;  // into a child node, with which it ends
  const std::shared_ptr<Conditions> conditions;

  // CUDA_ERROR_NOT_SUPPORTED if the graph cannot have such a node: bodies of conditional nodes cannot have memory nodes. Other work that
  // they cannot run is refused at instantiation. CUDA_ERROR_INVALID_VALUE for a second free of the same memory.
  CUresult admits(const NodeWork& work) const;
  // In the order of creation.
  const std::vector<std::unique_ptr<GraphNode>>& all() const { return nodes; }
  // For the program's queries: all nodes, and those without dependencies.
  std::vector<GraphEdge> listed() const;
  std::vector<GraphEdge> roots() const;
  GraphNode& add(NodeWork work, std::vector<GraphEdge> before);
  // Removes its edges too.
  void remove(GraphNode& node);
  // CUDA_ERROR_INVALID_VALUE if addEdge()'s edge exists, or removeEdge()'s does not.
  CUresult addEdge(GraphNode& from, GraphNode& to, const CUgraphEdgeData& data);
  CUresult removeEdge(GraphNode& from, GraphNode& to);
  // A copy that includes the nodes of child graphs. It has no handle.
  std::shared_ptr<Graph> clone() const;
  // The program's handle of a graph that something else holds.
  uint64_t lent() { return table.lend(*this); }
  // False if it has nodes that allocate or free memory, conditional or device-updatable nodes, or ends with a node.
  bool canBeCopied() const;
  // Whether `other` is this graph or contained in it, at any depth.
  bool has(const Graph& other) const;
  // Topological order, otherwise the order of creation. Empty if there is a cycle (or no node).
  std::vector<GraphNode*> ordered() const;

 private:
  // Called when the last node that depended on `node` has been removed.
  void noteEnd(GraphNode& node);

  Graphs& table;
  std::vector<std::unique_ptr<GraphNode>> nodes;
  uint64_t lastEnd = 0;
  std::set<const GraphMemory*> freed;  // by free nodes, which cannot be removed
};

}  // namespace vgpu::client
