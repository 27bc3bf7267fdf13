#include "stub/emulator/stream/graph.h"

#include <algorithm>

#include "stub/emulator/driver/driver.h"
#include "stub/emulator/stream/device-graph-node.h"

namespace vgpu::emulator::api {

GraphMemory::~GraphMemory() {
  try {
    driver.freePlain(driver.space.beginFree(address));
  } catch (const Refusal&) {
    // The program may already have freed it.
  }
}

Graph::~Graph() {
  driver.graphNodes.removeIf([this](const GraphNode& node) { return node.graph == this; });
}

std::shared_ptr<GraphNode> Graph::add(Operation operation, std::span<GraphNode* const> before) {
  for (GraphNode* each : before) require(each->graph == this);
  auto node = std::make_shared<GraphNode>();
  node->graph = this;
  node->operation = std::move(operation);
  node->before.assign(before.begin(), before.end());
  driver.graphNodes.add(node);
  nodes.push_back(node);
  return node;
}

std::vector<GraphNode*> Graph::nodesOf(std::span<const CUgraphNode> handles) const {
  std::vector<GraphNode*> found;
  for (CUgraphNode handle : handles) {
    found.push_back(driver.graphNodes.get(handle).get());
    require(found.back()->graph == this);
  }
  return found;
}

std::shared_ptr<Graph> Graph::clone() const {
  auto copy = std::make_shared<Graph>(driver);
  copy->memory = memory;
  std::map<const GraphNode*, GraphNode*> twin;
  for (const std::shared_ptr<GraphNode>& node : nodes) {
    std::shared_ptr<GraphNode> made = copy->add(withoutDeviceNode(node->operation), {});
    made->child = node->child ? node->child->clone() : nullptr;
    made->event = node->event;
    made->origin = node.get();
    twin[node.get()] = made.get();
  }
  for (const std::shared_ptr<GraphNode>& node : nodes) {
    for (GraphNode* each : node->before) twin.at(node.get())->before.push_back(twin.at(each));
  }
  return copy;
}

bool Graph::hasConditionals() const {
  return std::any_of(nodes.begin(), nodes.end(), [](auto& node) { return node->conditional != nullptr; });
}

bool Graph::hasDeviceNodes() const {
  return std::any_of(nodes.begin(), nodes.end(), [](auto& node) { return deviceNodeOf(node->operation) != nullptr; });
}

std::vector<GraphNode*> Graph::ordered() const {
  std::vector<GraphNode*> order;
  std::map<const GraphNode*, bool> placed;
  while (order.size() < nodes.size()) {
    size_t had = order.size();
    for (const std::shared_ptr<GraphNode>& node : nodes) {
      bool ready = !placed[node.get()] && std::all_of(node->before.begin(), node->before.end(),
                                                      [&](const GraphNode* each) { return placed[each]; });
      if (!ready) continue;
      placed[node.get()] = true;
      order.push_back(node.get());
    }
    require(order.size() > had);
  }
  return order;
}

}  // namespace vgpu::emulator::api

using namespace vgpu::emulator::api;

namespace {

// Runs `body` with the graphs locked.
template <class Body>
CUresult enterGraphs(Body&& body) {
  return enterDriver([&](Driver& driver) {
    std::lock_guard lock(driver.graphMutex);
    return answer(body, driver);
  });
}

// CUDA's convention for lists: without a list only the count is returned, else as many elements as fit, and the count.
template <class Handle>
void fillList(const std::vector<Handle>& all, Handle* list, size_t* count) {
  require(count != nullptr);
  if (list) {
    for (size_t i = 0; i < *count; ++i) list[i] = i < all.size() ? all[i] : nullptr;
  }
  if (!list || *count > all.size()) *count = all.size();
}

struct Edge {
  GraphNode *from, *to;
};

std::vector<Edge> edgesOf(const Graph& graph) {
  std::vector<Edge> edges;
  for (const std::shared_ptr<GraphNode>& node : graph.nodes) {
    for (GraphNode* each : node->before) edges.push_back({each, node.get()});
  }
  return edges;
}

}  // namespace

CUresult CUDAAPI cuGraphCreate(CUgraph* handle, unsigned flags) {
  return enterGraphs([&](Driver& driver) {
    require(handle != nullptr && flags == 0);
    *handle = driver.graphs.add(std::make_shared<Graph>(driver));
  });
}

CUresult CUDAAPI cuGraphDestroy(CUgraph handle) {
  return enterGraphs([&](Driver& driver) {
    require(!driver.graphs.get(handle)->isBody);
    driver.graphs.remove(handle);
  });
}

CUresult CUDAAPI cuGraphClone(CUgraph* copy, CUgraph handle) {
  return enterGraphs([&](Driver& driver) {
    require(copy != nullptr);
    std::shared_ptr<Graph> graph = driver.graphs.get(handle);
    if (graph->hasConditionals() || graph->hasDeviceNodes()) refuse(CUDA_ERROR_NOT_SUPPORTED);
    *copy = driver.graphs.add(graph->clone());
  });
}

CUresult CUDAAPI cuGraphNodeFindInClone(CUgraphNode* found, CUgraphNode original, CUgraph clone) {
  return enterGraphs([&](Driver& driver) {
    require(found != nullptr);
    std::shared_ptr<GraphNode> node = driver.graphNodes.get(original);
    std::shared_ptr<Graph> graph = driver.graphs.get(clone);
    for (const std::shared_ptr<GraphNode>& each : graph->nodes) {
      if (each->origin != node.get()) continue;
      *found = each->handle;
      return;
    }
    refuse(CUDA_ERROR_INVALID_VALUE);
  });
}

CUresult CUDAAPI cuGraphGetNodes(CUgraph handle, CUgraphNode* list, size_t* count) {
  return enterGraphs([&](Driver& driver) {
    std::vector<CUgraphNode> all;
    for (const std::shared_ptr<GraphNode>& node : driver.graphs.get(handle)->nodes) all.push_back(node->handle);
    fillList(all, list, count);
  });
}

CUresult CUDAAPI cuGraphGetRootNodes(CUgraph handle, CUgraphNode* list, size_t* count) {
  return enterGraphs([&](Driver& driver) {
    std::vector<CUgraphNode> roots;
    for (const std::shared_ptr<GraphNode>& node : driver.graphs.get(handle)->nodes) {
      if (node->before.empty()) roots.push_back(node->handle);
    }
    fillList(roots, list, count);
  });
}

CUresult CUDAAPI cuGraphGetEdges_v2(CUgraph handle, CUgraphNode* from, CUgraphNode* to, CUgraphEdgeData* data,
                                    size_t* count) {
  return enterGraphs([&](Driver& driver) {
    require(count != nullptr && (from == nullptr) == (to == nullptr));
    std::vector<CUgraphNode> sources, targets;
    for (const Edge& edge : edgesOf(*driver.graphs.get(handle))) {
      sources.push_back(edge.from->handle);
      targets.push_back(edge.to->handle);
    }
    size_t room = *count;
    if (data) std::fill_n(data, room, CUgraphEdgeData{});
    fillList(sources, from, count);
    fillList(targets, to, &room);
  });
}

CUresult CUDAAPI cuGraphNodeGetDependencies_v2(CUgraphNode handle, CUgraphNode* list, CUgraphEdgeData* data,
                                               size_t* count) {
  return enterGraphs([&](Driver& driver) {
    require(count != nullptr);
    std::vector<CUgraphNode> before;
    for (GraphNode* each : driver.graphNodes.get(handle)->before) before.push_back(each->handle);
    if (data) std::fill_n(data, *count, CUgraphEdgeData{});
    fillList(before, list, count);
  });
}

CUresult CUDAAPI cuGraphNodeGetDependentNodes_v2(CUgraphNode handle, CUgraphNode* list, CUgraphEdgeData* data,
                                                 size_t* count) {
  return enterGraphs([&](Driver& driver) {
    require(count != nullptr);
    std::shared_ptr<GraphNode> node = driver.graphNodes.get(handle);
    std::vector<CUgraphNode> after;
    for (const Edge& edge : edgesOf(*node->graph)) {
      if (edge.from == node.get()) after.push_back(edge.to->handle);
    }
    if (data) std::fill_n(data, *count, CUgraphEdgeData{});
    fillList(after, list, count);
  });
}

CUresult CUDAAPI cuGraphAddDependencies_v2(CUgraph handle, const CUgraphNode* from, const CUgraphNode* to,
                                           const CUgraphEdgeData*, size_t count) {
  return enterGraphs([&](Driver& driver) {
    std::shared_ptr<Graph> graph = driver.graphs.get(handle);
    require(count == 0 || (from != nullptr && to != nullptr));
    for (size_t i = 0; i < count; ++i) {
      std::shared_ptr<GraphNode> source = driver.graphNodes.get(from[i]), target = driver.graphNodes.get(to[i]);
      require(source->graph == graph.get() && target->graph == graph.get() && source != target);
      require(std::find(target->before.begin(), target->before.end(), source.get()) == target->before.end());
      target->before.push_back(source.get());
    }
  });
}

CUresult CUDAAPI cuGraphRemoveDependencies_v2(CUgraph handle, const CUgraphNode* from, const CUgraphNode* to,
                                              const CUgraphEdgeData*, size_t count) {
  return enterGraphs([&](Driver& driver) {
    std::shared_ptr<Graph> graph = driver.graphs.get(handle);
    require(count == 0 || (from != nullptr && to != nullptr));
    for (size_t i = 0; i < count; ++i) {
      std::shared_ptr<GraphNode> source = driver.graphNodes.get(from[i]), target = driver.graphNodes.get(to[i]);
      require(target->graph == graph.get() && std::erase(target->before, source.get()) == 1);
    }
  });
}

CUresult CUDAAPI cuGraphNodeGetType(CUgraphNode handle, CUgraphNodeType* type) {
  return enterGraphs([&](Driver& driver) {
    require(type != nullptr);
    *type = driver.graphNodes.get(handle)->operation.type;
  });
}

CUresult CUDAAPI cuGraphDestroyNode(CUgraphNode handle) {
  return enterGraphs([&](Driver& driver) {
    std::shared_ptr<GraphNode> node = driver.graphNodes.get(handle);
    if (deviceNodeOf(node->operation)) refuse(CUDA_ERROR_NOT_SUPPORTED);
    driver.graphNodes.remove(handle);
    for (const std::shared_ptr<GraphNode>& each : node->graph->nodes) std::erase(each->before, node.get());
    node->graph->nodes.remove(node);
  });
}
