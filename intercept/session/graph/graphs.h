// The handles of graphs and of their nodes. They are counted up and never reused.
//
// Any thread; `mutex` is a leaf lock. Stays in the program's process over a suspend.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>

namespace vgpu::client {

class Conditions;
class Graph;
class GraphMemories;
struct GraphNode;

class Graphs {
 public:
  explicit Graphs(GraphMemories& memories) : memories(memories) {}

  // make(): an empty graph without a handle. makeBody(): one that is a conditional node's body, in a graph with these conditions.
  std::shared_ptr<Graph> make();
  std::shared_ptr<Graph> makeBody(std::shared_ptr<Conditions> conditions);
  // Gives the program a handle of a graph; the table then holds the graph until it is removed.
  uint64_t give(const std::shared_ptr<Graph>& graph);
  // The handle of a graph that something else holds, a child node or a capture.
  uint64_t lend(Graph& graph);
  // nullptr if the handle is not live.
  std::shared_ptr<Graph> find(uint64_t handle) const;
  GraphNode* findNode(uint64_t handle) const;
  // Finds a graph that a child node in `into` can take over (CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE), or returns CUDA's error. From move() on
  // the node owns it, and the program's handle is only lent.
  CUresult findMovable(uint64_t handle, const Graph& into, std::shared_ptr<Graph>& child) const;
  void move(Graph& child);
  // False if there is none, or if the program may not destroy it.
  bool remove(uint64_t handle);

 private:
  friend class Graph;
  uint64_t enter(GraphNode& node);
  void leave(const GraphNode& node);
  void leave(const Graph& graph);

  // Outside the range of object kinds (vgpu/api/handle.h): such a handle is never taken for one of the session's objects.
  static constexpr uint64_t graphHandles = uint64_t{0xfe} << 52, nodeHandles = uint64_t{0xff} << 52;

  struct Known {
    std::shared_ptr<Graph> owned;  // null: something else holds it
    Graph* graph;
  };
  GraphMemories& memories;
  mutable std::mutex mutex;
  std::unordered_map<uint64_t, Known> graphs;
  std::unordered_map<uint64_t, GraphNode*> nodes;
  uint64_t made = 0;
};

}  // namespace vgpu::client
