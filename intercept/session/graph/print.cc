// Prints a graph in Graphviz's language: nodes as boxes, dependencies as arrows. The flags select what is printed of a node besides its
// type and its kernel's name (CUDA Driver API, "cuGraphDebugDotPrint").
#include <array>
#include <bit>
#include <cstdio>
#include <memory>
#include <span>
#include <sstream>
#include <string>
#include <unordered_map>
#include <variant>

#include "intercept/session/graph/node-lists.h"
#include "intercept/session/handle-table.h"
#include "vgpu/base/hex.h"

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

template <typename Value>
std::span<const std::byte> bytesOfValue(const Value& value) {
  return std::as_bytes(std::span(&value, 1));
}

// The text in a node's box.
class Label {
 public:
  Label(const HandleTable& handles, unsigned flags) : handles(handles), flags(flags) {}

  void write(size_t place, const GraphNode& node) {
    text << place << "\\n" << nameOf(node.type());
    if (asked(CU_GRAPH_DEBUG_DOT_FLAGS_HANDLES)) address("node", node.handle);
    std::visit([&](const auto& work) { tell(work); }, node.work);
  }
  std::string get() const { return text.str(); }

 private:
  bool asked(unsigned flag) const { return (flags & (flag | CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE)) != 0; }
  // The name of the structure whose fields follow, of the API that the flags select.
  void title(const char* driver, const char* runtime) {
    text << "\\n" << (asked(CU_GRAPH_DEBUG_DOT_FLAGS_RUNTIME_TYPES) ? runtime : driver);
  }
  std::ostream& line(const char* name) { return text << "\\n" << name << ": "; }

  void tell(const EmptyWork&) {}
  void tell(const LibraryWork&) {}

  void tell(const KernelWork& kernel) {
    auto* function = handles.find<api::Kind::FUNCTION>(kernel.function);
    if (function != nullptr) text << "\\n" << function->layout->name;
    if (asked(CU_GRAPH_DEBUG_DOT_FLAGS_HANDLES)) address("func", kernel.function);
    if (asked(CU_GRAPH_DEBUG_DOT_FLAGS_KERNEL_NODE_PARAMS)) {
      title("CUDA_KERNEL_NODE_PARAMS", "cudaKernelNodeParams");
      const LaunchShape& shape = kernel.shape;
      line("gridDim") << shape.gridX << ", " << shape.gridY << ", " << shape.gridZ;
      line("blockDim") << shape.blockX << ", " << shape.blockY << ", " << shape.blockZ;
      line("sharedMemBytes") << shape.sharedBytes;
      line("kernelParams") << hexOf(kernel.parameters);  // in memory order
    }
    if (!asked(CU_GRAPH_DEBUG_DOT_FLAGS_KERNEL_NODE_ATTRIBUTES)) return;
    title("CUkernelNodeAttrValue", "cudaKernelNodeAttrValue");
    line("cooperative") << kernel.shape.cooperative;
    for (const CUlaunchAttribute& each : kernel.attributes) {
      text << "\\nattribute " << each.id << ": " << hexOf(bytesOfValue(each.value).first(sizeof each.value.clusterDim));
    }
  }

  void tell(const CopyWork& copy) {
    if (!asked(CU_GRAPH_DEBUG_DOT_FLAGS_MEMCPY_NODE_PARAMS)) return;
    title("CUDA_MEMCPY3D", "cudaMemcpy3DParms");
    const CUDA_MEMCPY3D& of = copy.given;
    tellEnd("src", {of.srcXInBytes, of.srcY, of.srcZ}, of.srcPitch, copy.from);
    tellEnd("dst", {of.dstXInBytes, of.dstY, of.dstZ}, of.dstPitch, copy.to);
    line("extent") << of.WidthInBytes << ", " << of.Height << ", " << of.Depth;
  }
  void tellEnd(const char* name, const std::array<size_t, 3>& at, size_t pitch, const CopyEnd& end) {
    line(name) << (end.isArray() ? "array 0x" : "address 0x") << std::hex << end.place.number() << std::dec;
    text << ", at " << at[0] << ", " << at[1] << ", " << at[2] << ", pitch " << pitch;
  }

  void tell(const FillWork& fill) {
    if (!asked(CU_GRAPH_DEBUG_DOT_FLAGS_MEMSET_NODE_PARAMS)) return;
    title("CUDA_MEMSET_NODE_PARAMS", "cudaMemsetParams");
    address("dst", fill.given.dst);
    line("pitch") << fill.given.pitch;
    line("value") << fill.given.value;
    line("elementSize") << fill.given.elementSize;
    line("width") << fill.given.width;
    line("height") << fill.given.height;
  }

  void tell(const HostWork& host) {
    if (!asked(CU_GRAPH_DEBUG_DOT_FLAGS_HOST_NODE_PARAMS)) return;
    title("CUDA_HOST_NODE_PARAMS", "cudaHostNodeParams");
    address("fn", std::bit_cast<uint64_t>(host.given.fn));
    address("userData", std::bit_cast<uint64_t>(host.given.userData));
  }

  void tell(const EventWork& event) {
    if (asked(CU_GRAPH_DEBUG_DOT_FLAGS_EVENT_NODE_PARAMS)) address("event", event.event);
  }

  void tell(const MemOpsWork& batch) {
    if (!asked(CU_GRAPH_DEBUG_DOT_FLAGS_BATCH_MEM_OP_NODE_PARAMS)) return;
    title("CUDA_BATCH_MEM_OP_NODE_PARAMS", "CUDA_BATCH_MEM_OP_NODE_PARAMS");
    line("count") << batch.operations.size();
    line("flags") << batch.flags;
    for (const CUstreamBatchMemOpParams& each : batch.operations) line("operation") << hexOf(bytesOfValue(each));
  }

  void tell(const ChildWork&) {}  // its nodes are printed instead

  void tell(const AllocWork& alloc) {
    if (!asked(CU_GRAPH_DEBUG_DOT_FLAGS_MEM_ALLOC_NODE_PARAMS)) return;
    title("CUDA_MEM_ALLOC_NODE_PARAMS", "cudaMemAllocNodeParams");
    line("device") << alloc.given.poolProps.location.id;
    line("bytesize") << alloc.given.bytesize;
    address("dptr", alloc.given.dptr);
  }

  void tell(const FreeWork& free) {
    if (asked(CU_GRAPH_DEBUG_DOT_FLAGS_MEM_FREE_NODE_PARAMS)) address("dptr", free.memory->address);
  }

  void tell(const ConditionalWork& conditional) {
    if (!asked(CU_GRAPH_DEBUG_DOT_FLAGS_CONDITIONAL_NODE_PARAMS)) return;
    title("CUDA_CONDITIONAL_NODE_PARAMS", "cudaConditionalNodeParams");
    line("handle") << conditional.condition;
    constexpr const char* types[] = {"IF", "WHILE", "SWITCH"};
    line("type") << types[conditional.type];
    line("size") << conditional.bodies.size();
  }

  void address(const char* name, uint64_t value) { line(name) << "0x" << std::hex << value << std::dec; }

  const HandleTable& handles;
  const unsigned flags;
  std::ostringstream text;
};

struct Printer {
  FILE* file;
  const HandleTable& handles;
  unsigned flags;
  size_t edges = 0;  // how many have been printed

  // A node's number is its index in its graph, so that two programs that build the same graph print the same.
  void print(const Graph& graph, const std::string& prefix) {
    std::unordered_map<const GraphNode*, size_t> places;
    for (auto& node : graph.all()) {
      size_t place = places.size();
      places[node.get()] = place;
      Label label(handles, flags);
      label.write(place, *node);
      fprintf(file, "  \"%s%zu\" [shape=\"rectangle\", label=\"%s\"];\n", prefix.c_str(), place, label.get().c_str());
      if (auto* child = std::get_if<ChildWork>(&node->work)) print(*child->graph, prefix + std::to_string(place) + "_");
      if (auto* conditional = std::get_if<ConditionalWork>(&node->work))
        for (size_t body = 0; body < conditional->bodies.size(); ++body)
          print(*conditional->bodies[body], prefix + std::to_string(place) + "_" + std::to_string(body) + "_");
    }
    const bool areNumbered = flags & (CU_GRAPH_DEBUG_DOT_FLAGS_EXTRA_TOPO_INFO | CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE);
    for (auto& node : graph.all())
      for (auto& edge : node->before) {
        const std::string label = areNumbered ? " [label=\"" + std::to_string(edges++) + "\"]" : "";
        fprintf(file, "  \"%s%zu\" -> \"%s%zu\"%s;\n", prefix.c_str(), places[edge.from], prefix.c_str(), places[node.get()], label.c_str());
      }
  }
};

}  // namespace

CUresult printGraph(const Graph& graph, const HandleTable& handles, const char* path, unsigned flags) {
  std::unique_ptr<FILE, int (*)(FILE*)> file(fopen(path, "w"), fclose);
  if (file == nullptr) return CUDA_ERROR_OPERATING_SYSTEM;
  fprintf(file.get(), "digraph dot {\n");
  Printer{file.get(), handles, flags}.print(graph, "graph_");
  fprintf(file.get(), "}\n");
  return CUDA_SUCCESS;
}

}  // namespace vgpu::client
