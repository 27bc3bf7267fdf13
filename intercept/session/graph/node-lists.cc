#include "intercept/session/graph/node-lists.h"

#include <algorithm>

#include "intercept/session/graph/edge-ports.h"
#include "intercept/session/handle-table.h"
#include "vgpu/api/wire-value.h"

namespace vgpu::client {

CUgraphNode programsNode(const GraphNode& node) { return fromWire<CUgraphNode>(node.handle); }

CUresult answerList(const std::vector<GraphEdge>& all, const NodeRoom& room) {
  if (room.count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const bool havePorts = std::ranges::any_of(all, [](auto& edge) { return hasPort(edge.data); });
  if (room.nodes != nullptr && room.edges == nullptr && havePorts) return CUDA_ERROR_LOSSY_QUERY;
  const size_t size = room.nodes == nullptr && room.edges == nullptr ? 0 : *room.count;
  for (size_t i = 0; i < size; ++i) {
    if (room.nodes != nullptr) room.nodes[i] = i < all.size() ? programsNode(*all[i].from) : nullptr;
    if (room.edges != nullptr) room.edges[i] = i < all.size() ? all[i].data : CUgraphEdgeData{};
  }
  if (size == 0 || *room.count > all.size()) *room.count = all.size();
  return CUDA_SUCCESS;
}

CUresult edgesOf(Graphs& graphs, const Graph& graph, const Dependencies& before, const CUgraphNodeType* to,
                 std::vector<GraphEdge>& edges) {
  if (before.count != 0 && before.nodes == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < before.count; ++i) {
    GraphNode* node = graphs.findNode(toWire(before.nodes[i]));
    if (node == nullptr || node->graph != &graph) return CUDA_ERROR_INVALID_VALUE;
    if (std::ranges::any_of(edges, [&](auto& edge) { return edge.from == node; })) return CUDA_ERROR_INVALID_VALUE;
    CUgraphEdgeData data = before.edges != nullptr ? before.edges[i] : CUgraphEdgeData{};
    if (!isPossible(node->type(), to, data)) return CUDA_ERROR_INVALID_VALUE;
    edges.push_back({node, data});
  }
  return CUDA_SUCCESS;
}

void placeParameters(KernelWork& work, const HandleTable& handles) {
  auto* function = handles.find<api::Kind::FUNCTION>(work.function);
  work.pointers.clear();
  work.extra.clear();
  if (work.blockBytes != 0) {
    work.extra = {CU_LAUNCH_PARAM_BUFFER_POINTER, work.parameters.data(), CU_LAUNCH_PARAM_BUFFER_SIZE, &work.blockBytes,
                  CU_LAUNCH_PARAM_END};
  } else if (function != nullptr) {
    for (auto& parameter : function->layout->parameters) work.pointers.push_back(work.parameters.data() + parameter.offset);
  }
}

}  // namespace vgpu::client
