#include "intercept/session/graph/graphs.h"

#include "intercept/session/graph/graph.h"

namespace vgpu::client {

std::shared_ptr<Graph> Graphs::make() { return std::make_shared<Graph>(*this); }

std::shared_ptr<Graph> Graphs::makeBody(std::shared_ptr<Conditions> conditions) {
  return std::make_shared<Graph>(*this, std::move(conditions));
}

uint64_t Graphs::give(const std::shared_ptr<Graph>& graph) {
  uint64_t handle = lend(*graph);
  std::lock_guard lock(mutex);
  graphs.at(handle).owned = graph;
  return handle;
}

uint64_t Graphs::lend(Graph& graph) {
  if (graph.handle != 0) return graph.handle;
  std::lock_guard lock(mutex);
  graph.handle = graphHandles | ++made;
  graphs[graph.handle] = {nullptr, &graph};
  return graph.handle;
}

std::shared_ptr<Graph> Graphs::find(uint64_t handle) const {
  std::lock_guard lock(mutex);
  auto found = graphs.find(handle);
  return found == graphs.end() ? nullptr : found->second.graph->shared_from_this();
}

CUresult Graphs::findMovable(uint64_t handle, const Graph& into, std::shared_ptr<Graph>& child) const {
  child = find(handle);
  if (child == nullptr || child->has(into)) return CUDA_ERROR_INVALID_VALUE;
  std::lock_guard lock(mutex);
  return graphs.at(handle).owned != nullptr && child->canBeCopied() ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
}

void Graphs::move(Graph& child) {
  std::lock_guard lock(mutex);
  graphs.at(child.handle).owned.reset();  // the node holds it too
  child.isMoved = true;
}

GraphNode* Graphs::findNode(uint64_t handle) const {
  std::lock_guard lock(mutex);
  auto found = nodes.find(handle);
  return found == nodes.end() ? nullptr : found->second;
}

bool Graphs::remove(uint64_t handle) {
  std::shared_ptr<Graph> last;  // destroyed after the lock is released
  std::lock_guard lock(mutex);
  auto found = graphs.find(handle);
  if (found == graphs.end() || found->second.owned == nullptr) return false;
  last = std::move(found->second.owned);
  graphs.erase(found);
  last->handle = 0;
  return true;
}

uint64_t Graphs::enter(GraphNode& node) {
  std::lock_guard lock(mutex);
  uint64_t handle = nodeHandles | ++made;
  nodes[handle] = &node;
  return handle;
}

void Graphs::leave(const GraphNode& node) {
  std::lock_guard lock(mutex);
  nodes.erase(node.handle);
}

void Graphs::leave(const Graph& graph) {
  std::lock_guard lock(mutex);
  graphs.erase(graph.handle);
}

}  // namespace vgpu::client
