// What a program passes and gets of a graph: lists of nodes, a kernel's parameters, a printed graph.
#pragma once

#include <vector>

#include "intercept/session/graph/graph.h"

namespace vgpu::client {

class HandleTable;

struct Dependencies {
  const CUgraphNode* nodes;
  const CUgraphEdgeData* edges;
  size_t count;
};
// The program's buffers for a list: without buffers CUDA returns only the length, else as many elements as fit and the list's length.
struct NodeRoom {
  CUgraphNode* nodes;
  size_t* count;
  CUgraphEdgeData* edges = nullptr;
};

// The program's handle of a node.
CUgraphNode programsNode(const GraphNode& node);
// Returns the nodes from which the edges come. CUDA_ERROR_LOSSY_QUERY if some have ports and the program does not ask for edge data.
CUresult answerList(const std::vector<GraphEdge>& all, const NodeRoom& room);

// The program's list of dependencies as edges to a node of type `to` (null if not known yet). CUDA_ERROR_INVALID_VALUE if one is not a node
// of the graph, occurs twice, or its edge is invalid.
CUresult edgesOf(Graphs& graphs, const Graph& graph, const Dependencies& before, const CUgraphNodeType* to,
                 std::vector<GraphEdge>& edges);
// Fills the arrays through which the program reads a kernel's parameters: valid until the node is changed.
void placeParameters(KernelWork& work, const HandleTable& handles);

// Writes the graph in Graphviz's language, with the details that `flags` (CUgraphDebugDot_flags) select; unknown flags are ignored.
// `handles`: for the names of kernels. CUDA's result.
CUresult printGraph(const Graph& graph, const HandleTable& handles, const char* path, unsigned flags);

}  // namespace vgpu::client
