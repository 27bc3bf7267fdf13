// What a program gives and gets of a graph: lists of nodes, a kernel's parameters, a text.
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
// Room for a list, as CUDA answers one: without room its length alone, else as many as fit and how many there were.
struct NodeRoom {
  CUgraphNode* nodes;
  size_t* count;
  CUgraphEdgeData* edges = nullptr;
};

// The program's handle.
CUgraphNode programsNode(const GraphNode& node);
// The nodes from which the edges come. CUDA_ERROR_LOSSY_QUERY if some have ports and the program does not ask for them.
CUresult answerList(const std::vector<GraphEdge>& all, const NodeRoom& room);

// Of live graphs' dependencies, as edges to a node of that type, null if it is not known yet. CUDA_ERROR_INVALID_VALUE if one is no
// node of the graph, or twice there, or there is no such edge.
CUresult edgesOf(Graphs& graphs, const Graph& graph, const Dependencies& before, const CUgraphNodeType* to,
                 std::vector<GraphEdge>& edges);
// Places what is kept of a kernel's parameters as the program reads them: valid until the node is changed.
void placeParameters(KernelWork& work, const HandleTable& handles);

// Writes the graph in the language of Graphviz, with what `flags` (CUgraphDebugDot_flags) ask for; those that CUDA does not know mean
// nothing. `handles`: for the names of kernels. CUDA's result.
CUresult printGraph(const Graph& graph, const HandleTable& handles, const char* path, unsigned flags);

}  // namespace vgpu::client
