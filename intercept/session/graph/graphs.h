// The handles of graphs and of their nodes. They count up and are never used again.
//
// Any thread; `mutex` is a leaf. All of it stays in the program's process over a suspend.
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

  // An empty graph, without a handle; one that is the body of a node of a graph with these conditions.
  std::shared_ptr<Graph> make();
  std::shared_ptr<Graph> makeBody(std::shared_ptr<Conditions> conditions);
  // The program's handle of a graph, which then holds it until it is removed.
  uint64_t give(const std::shared_ptr<Graph>& graph);
  // That of one which something else holds, a child node or a capture.
  uint64_t lend(Graph& graph);
  // nullptr if there is none.
  std::shared_ptr<Graph> find(uint64_t handle) const;
  GraphNode* findNode(uint64_t handle) const;
  // One that a child's node in `into` can take over (CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE), or CUDA's error; from move() on that node has it,
  // and the program's handle is lent.
  CUresult findMovable(uint64_t handle, const Graph& into, std::shared_ptr<Graph>& child) const;
  void move(Graph& child);
  // False if there is none, or the program may not destroy it.
  bool remove(uint64_t handle);

 private:
  friend class Graph;
  uint64_t enter(GraphNode& node);
  void leave(const GraphNode& node);
  void leave(const Graph& graph);

  // Beyond the kinds of objects (vgpu/api/handle.h): such a handle is never taken for one of the session's.
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
