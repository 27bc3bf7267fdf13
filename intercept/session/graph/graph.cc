#include "intercept/session/graph/graph.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>

namespace vgpu::client {

Graph::~Graph() {
  for (auto& node : nodes) table.leave(*node);
  if (handle != 0) table.leave(*this);
}

std::vector<GraphEdge> GraphNode::after() const {
  std::vector<GraphEdge> edges;
  for (auto& other : graph->all())
    for (auto& edge : other->before)
      if (edge.from == this) edges.push_back({other.get(), edge.data});
  return edges;
}

std::vector<GraphEdge> Graph::listed() const {
  std::vector<GraphEdge> all;
  for (auto& node : nodes) all.push_back({node.get()});
  return all;
}

std::vector<GraphEdge> Graph::roots() const {
  std::vector<GraphEdge> roots;
  for (auto& node : nodes)
    if (node->before.empty()) roots.push_back({node.get()});
  return roots;
}

GraphNode& Graph::add(NodeWork work, std::vector<GraphEdge> before) {
  if (auto* alloc = std::get_if<AllocWork>(&work)) table.memories.allocatedIn(*alloc->memory, conditions);
  if (auto* free = std::get_if<FreeWork>(&work)) {
    freed.insert(free->memory.get());
    table.memories.freedIn(*free->memory, conditions);
  }
  auto node = std::make_unique<GraphNode>();
  node->graph = this;
  node->work = std::move(work);
  node->before = std::move(before);
  node->endsSince = ++lastEnd;
  node->handle = table.enter(*node);
  return *nodes.emplace_back(std::move(node));
}

void Graph::remove(GraphNode& node) {
  for (auto& other : nodes) std::erase_if(other->before, [&](const GraphEdge& edge) { return edge.from == &node; });
  table.leave(node);
  const auto before = std::move(node.before);
  std::erase_if(nodes, [&](auto& other) { return other.get() == &node; });
  for (auto& edge : before) noteEnd(*edge.from);
}

void Graph::noteEnd(GraphNode& node) {
  auto comesBehind = [&](auto& other) { return std::ranges::find(other->before, &node, &GraphEdge::from) != other->before.end(); };
  if (std::ranges::none_of(nodes, comesBehind)) node.endsSince = ++lastEnd;
}

CUresult Graph::addEdge(GraphNode& from, GraphNode& to, const CUgraphEdgeData& data) {
  bool isThere = std::ranges::any_of(to.before, [&](auto& edge) { return edge.from == &from; });
  if (&from == &to || isThere) return CUDA_ERROR_INVALID_VALUE;
  to.before.push_back({&from, data});
  return CUDA_SUCCESS;
}

CUresult Graph::removeEdge(GraphNode& from, GraphNode& to) {
  auto isMeant = [&](auto& edge) { return edge.from == &from; };
  if (std::erase_if(to.before, isMeant) == 0) return CUDA_ERROR_INVALID_VALUE;
  noteEnd(from);
  return CUDA_SUCCESS;
}

std::shared_ptr<Graph> Graph::clone() const {
  auto copy = table.make();
  copy->held = held;
  copy->lastEnd = lastEnd;
  std::unordered_map<const GraphNode*, GraphNode*> copies;
  for (auto& node : nodes) {
    NodeWork work = node->work;
    if (auto* child = std::get_if<ChildWork>(&work)) child->graph = child->graph->clone();
    GraphNode& made = copy->add(std::move(work), {});
    made.origin = node->handle;
    made.endsSince = node->endsSince;
    copies[node.get()] = &made;
  }
  for (auto& node : nodes)
    for (auto& edge : node->before) copies[node.get()]->before.push_back({copies[edge.from], edge.data});
  return copy;
}

bool Graph::canBeCopied() const {
  auto isBound = [](auto& node) {
    return isMemory(node->work) || std::holds_alternative<ConditionalWork>(node->work) || node->isDeviceUpdatable();
  };
  return !isBody && !isMoved && std::ranges::none_of(nodes, isBound);
}

bool Graph::has(const Graph& other) const {
  return this == &other || std::ranges::any_of(nodes, [&](auto& node) {
    auto* child = std::get_if<ChildWork>(&node->work);
    return child != nullptr && child->graph->has(other);
  });
}

CUresult Graph::admits(const NodeWork& work) const {
  if (auto* free = std::get_if<FreeWork>(&work); free != nullptr && freed.contains(free->memory.get()))
    return CUDA_ERROR_INVALID_VALUE;
  if (isMoved && (isMemory(work) || std::holds_alternative<ConditionalWork>(work))) return CUDA_ERROR_NOT_SUPPORTED;
  if (!isBody) return CUDA_SUCCESS;
  bool may = !isMemory(work) && !std::holds_alternative<MemOpsWork>(work) && !std::holds_alternative<LibraryWork>(work);
  if (auto* child = std::get_if<ChildWork>(&work))
    may = std::ranges::all_of(child->graph->nodes, [&](auto& node) { return admits(node->work) == CUDA_SUCCESS; });
  return may ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
}

std::vector<GraphNode*> Graph::ordered() const {
  std::unordered_map<const GraphNode*, size_t> missing;  // how many of its dependencies are not in the order yet
  std::unordered_map<const GraphNode*, std::vector<GraphNode*>> after;
  std::vector<GraphNode*> order;
  auto isLater = [](const GraphNode* a, const GraphNode* b) { return a->handle > b->handle; };
  std::vector<GraphNode*> ready;  // a heap: the oldest node first
  for (auto& node : nodes) {
    missing[node.get()] = node->before.size();
    for (auto& edge : node->before) after[edge.from].push_back(node.get());
    if (node->before.empty()) ready.push_back(node.get());
  }
  std::ranges::make_heap(ready, isLater);
  while (!ready.empty()) {
    std::ranges::pop_heap(ready, isLater);
    GraphNode* next = ready.back();
    ready.pop_back();
    order.push_back(next);
    for (GraphNode* node : after[next]) {
      if (--missing[node] != 0) continue;
      ready.push_back(node);
      std::ranges::push_heap(ready, isLater);
    }
  }
  if (order.size() != nodes.size()) order.clear();
  return order;
}

CUgraph ChildWork::handle() const { return fromWire<CUgraph>(graph->lent()); }

}  // namespace vgpu::client
