// A graph in the language of Graphviz, a node a box and a dependency an arrow.
#include <cstdio>
#include <memory>
#include <string>
#include <unordered_map>

#include "intercept/session/graph/node-lists.h"
#include "intercept/session/handle-table.h"

namespace vgpu::client {

namespace {

const char* nameOf(CUgraphNodeType type) {
  switch (type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: return "KERNEL";
    case CU_GRAPH_NODE_TYPE_MEMCPY: return "MEMCPY";
    case CU_GRAPH_NODE_TYPE_MEMSET: return "MEMSET";
    case CU_GRAPH_NODE_TYPE_HOST: return "HOST";
    case CU_GRAPH_NODE_TYPE_GRAPH: return "GRAPH";
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT: return "EVENT_WAIT";
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD: return "EVENT_RECORD";
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP: return "BATCH_MEM_OP";
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC: return "MEM_ALLOC";
    case CU_GRAPH_NODE_TYPE_MEM_FREE: return "MEM_FREE";
    case CU_GRAPH_NODE_TYPE_CONDITIONAL: return "CONDITIONAL";
    default: return "EMPTY";
  }
}

// A node's number is its place in its graph, so that two programs that build the same graph print the same.
void print(FILE* file, const HandleTable& handles, const Graph& graph, const std::string& prefix) {
  std::unordered_map<const GraphNode*, size_t> places;
  for (auto& node : graph.all()) {
    size_t place = places.size();
    places[node.get()] = place;
    std::string label = nameOf(typeOf(node->work));
    if (auto* kernel = std::get_if<KernelWork>(&node->work))
      if (auto* function = handles.find<api::Kind::FUNCTION>(kernel->function)) label += "\\n" + function->layout->name;
    fprintf(file, "  \"%s%zu\" [shape=\"rectangle\", label=\"%zu\\n%s\"];\n", prefix.c_str(), place, place, label.c_str());
    if (auto* child = std::get_if<ChildWork>(&node->work))
      print(file, handles, *child->graph, prefix + std::to_string(place) + "_");
    if (auto* conditional = std::get_if<ConditionalWork>(&node->work))
      for (size_t body = 0; body < conditional->bodies.size(); ++body)
        print(file, handles, *conditional->bodies[body], prefix + std::to_string(place) + "_" + std::to_string(body) + "_");
  }
  for (auto& node : graph.all())
    for (auto& edge : node->before)
      fprintf(file, "  \"%s%zu\" -> \"%s%zu\";\n", prefix.c_str(), places[edge.from], prefix.c_str(), places[node.get()]);
}

}  // namespace

CUresult printGraph(const Graph& graph, const HandleTable& handles, const char* path) {
  std::unique_ptr<FILE, int (*)(FILE*)> file(fopen(path, "w"), fclose);
  if (file == nullptr) return CUDA_ERROR_OPERATING_SYSTEM;
  fprintf(file.get(), "digraph dot {\n");
  print(file.get(), handles, graph, "graph_");
  fprintf(file.get(), "}\n");
  return CUDA_SUCCESS;
}

}  // namespace vgpu::client
