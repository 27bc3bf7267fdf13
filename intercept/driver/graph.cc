// Graphs and their nodes, which are data of the program's process (intercept/session/graph/graph.h).
#include <algorithm>

#include "intercept/driver/shared.h"
#include "intercept/session/graph/node-attributes.h"
#include "intercept/session/graph/owned-memory.h"

namespace vgpu::client {

namespace {

// Runs `body` with a live graph; CUDA_ERROR_INVALID_VALUE if `graph` is not one.
template <typename Body>
CUresult onGraph(CUgraph graph, Body&& body) {
  return enterAny([&](Thread& thread) -> CUresult {
    auto found = findGraph(thread, graph);
    return found == nullptr ? CUDA_ERROR_INVALID_VALUE : body(thread.session.graphs, *found);
  });
}

template <typename Params>
CUresult getKernel(CUgraphNode node, Params* params) {
  return onWork<KernelWork>(node, params, [&](Thread& thread, KernelWork& work) {
    placeParameters(work, thread.session.handles);
    *params = {};
    params->func = fromWire<CUfunction>(work.function);
    params->gridDimX = work.shape.gridX, params->gridDimY = work.shape.gridY, params->gridDimZ = work.shape.gridZ;
    params->blockDimX = work.shape.blockX, params->blockDimY = work.shape.blockY, params->blockDimZ = work.shape.blockZ;
    params->sharedMemBytes = work.shape.sharedBytes;
    params->kernelParams = work.pointers.empty() ? nullptr : work.pointers.data();
    params->extra = work.extra.empty() ? nullptr : work.extra.data();
  });
}

}  // namespace

CUresult graphDestroy(CUgraph graph) {
  return enterAny([&](Thread& thread) {
    return thread.session.graphs.remove(toWire(graph)) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}

CUresult findInClone(CUgraphNode* node, CUgraphNode original, CUgraph clone) {
  return onGraph(clone, [&](Graphs&, Graph& graph) -> CUresult {
    if (node == nullptr) return CUDA_ERROR_INVALID_VALUE;
    auto isCopy = [&](auto& one) { return one->origin != 0 && one->origin == toWire(original); };
    auto found = std::ranges::find_if(graph.all(), isCopy);
    if (found == graph.all().end()) return CUDA_ERROR_INVALID_VALUE;
    *node = programsNode(**found);
    return CUDA_SUCCESS;
  });
}

CUresult addNode(CUgraphNode* node, CUgraph graph, const Dependencies& before, const NodeRequest& request) {
  return enter([&](Thread& thread) -> CUresult {
    Graphs& graphs = thread.session.graphs;
    auto found = graphs.find(toWire(graph));
    if (node == nullptr || found == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::vector<GraphEdge> edges;
    if (CUresult bad = edgesOf(graphs, *found, before, &request.params.type, edges)) return bad;
    NodeWork work;
    const bool isConditional = request.given && request.params.type == CU_GRAPH_NODE_TYPE_CONDITIONAL;
    std::shared_ptr<Graph> moved;
    if (CUresult bad = isConditional     ? describeConditional(graphs, *found, request, work)
                       : isMove(request) ? graphs.findMovable(toWire(request.params.graph.graph), *found, moved)
                                         : describeNode(thread, request, work))
      return bad;
    if (moved != nullptr) work = ChildWork{moved};
    // Memory of this graph's allocation nodes is refused too if the graph already frees it: nothing orders the new node before the free.
    if (!mayName(thread.session.graphMemories, nullptr, work)) return CUDA_ERROR_INVALID_VALUE;
    if (CUresult refused = found->admits(work)) return refused;
    if (moved != nullptr) graphs.move(*moved);
    *node = programsNode(found->add(std::move(work), std::move(edges)));
    return CUDA_SUCCESS;
  });
}

CUresult setNode(CUgraphNode node, const NodeRequest& request) {
  return enter([&](Thread& thread) -> CUresult {
    GraphNode* found = thread.session.graphs.findNode(toWire(node));
    NodeWork work;
    if (found == nullptr || !request.given || request.params.type != typeOf(found->work)) return CUDA_ERROR_INVALID_VALUE;
    if (isMemory(found->work)) return CUDA_ERROR_NOT_SUPPORTED;
    if (CUresult bad = describeChange(thread, request, found->work, work)) return bad;
    if (!mayName(thread.session.graphMemories, found->graph->conditions, work)) return CUDA_ERROR_INVALID_VALUE;
    if (CUresult refused = found->graph->admits(work)) return refused;
    found->work = std::move(work);
    return CUDA_SUCCESS;
  });
}

CUresult destroyNode(CUgraphNode node) {
  return enterAny([&](Thread& thread) -> CUresult {
    GraphNode* found = findNode(thread, node);
    if (found == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (isMemory(found->work) || found->isDeviceUpdatable()) return CUDA_ERROR_NOT_SUPPORTED;
    if (thread.session.captures.isActive()) thread.session.captures.forgetNode(*found);
    found->graph->remove(*found);
    return CUDA_SUCCESS;
  });
}

CUresult getKernelNode(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v1* params) { return getKernel(node, params); }
CUresult getKernelNode(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS* params) { return getKernel(node, params); }

CUresult getEvent(CUgraphNode node, CUgraphNodeType type, CUevent* event) {
  return enterAny([&](Thread& thread) -> CUresult {
    GraphNode* found = findNode(thread, node);
    if (event == nullptr || found == nullptr || found->type() != type) return CUDA_ERROR_INVALID_VALUE;
    *event = fromWire<CUevent>(std::get<EventWork>(found->work).event);
    return CUDA_SUCCESS;
  });
}

CUresult listEdges(CUgraph graph, CUgraphNode* from, CUgraphNode* to, CUgraphEdgeData* edges, size_t* count) {
  return onGraph(graph, [&](Graphs&, Graph& found) -> CUresult {
    if (count == nullptr || (from == nullptr) != (to == nullptr)) return CUDA_ERROR_INVALID_VALUE;
    std::vector<GraphEdge> sources, targets;
    for (auto& node : found.all())
      for (auto& edge : node->before) {
        sources.push_back(edge);
        targets.push_back({node.get()});
      }
    size_t room = *count;
    if (CUresult bad = answerList(sources, {from, count, edges})) return bad;
    return to == nullptr ? CUDA_SUCCESS : answerList(targets, {to, &room});
  });
}

CUresult changeEdges(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to, const CUgraphEdgeData* data, size_t count,
                     bool add) {
  return onGraph(graph, [&](Graphs& graphs, Graph& found) -> CUresult {
    if (count != 0 && (from == nullptr || to == nullptr)) return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; ++i) {
      GraphNode* second = graphs.findNode(toWire(to[i]));
      if (second == nullptr || second->graph != &found) return CUDA_ERROR_INVALID_VALUE;
      const CUgraphNodeType type = second->type();
      std::vector<GraphEdge> edge;
      // The driver ignores an edge's data when it removes the edge.
      if (CUresult bad = edgesOf(graphs, found, {from + i, data == nullptr || !add ? nullptr : data + i, 1}, &type, edge)) return bad;
      GraphNode& first = *edge[0].from;
      CUresult changed = add ? found.addEdge(first, *second, edge[0].data) : found.removeEdge(first, *second);
      if (changed != CUDA_SUCCESS) return changed;
    }
    return CUDA_SUCCESS;
  });
}

CUresult getNodeAttribute(CUgraphNode node, CUkernelNodeAttrID attribute, CUkernelNodeAttrValue* value) {
  CUresult known = CUDA_SUCCESS;
  CUresult found = onWork<KernelWork>(node, value, [&](Thread&, auto& work) { known = getAttribute(work, attribute, *value); });
  return found != CUDA_SUCCESS ? found : known;
}

CUresult setNodeAttribute(CUgraphNode node, CUkernelNodeAttrID attribute, const CUkernelNodeAttrValue* value) {
  CUresult known = CUDA_SUCCESS;
  auto set = [&](Thread& thread, auto& work) {
    auto before = work.attributes;
    known = setAttribute(thread, work, attribute, const_cast<CUkernelNodeAttrValue&>(*value));  // may write to it, as the driver does
    if (known == CUDA_SUCCESS) known = checkClusters(thread, work);
    if (known != CUDA_SUCCESS) work.attributes = std::move(before);
  };
  CUresult found = onWork<KernelWork>(node, value, set);
  return found != CUDA_SUCCESS ? found : known;
}

}  // namespace vgpu::client
