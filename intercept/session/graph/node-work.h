// The work of a graph node, with copies of all that it needs: the program may change or free the memory with which it described the node.
// Plain values in the program's process; for an executable graph's node the worker has the same (docs/graphs.md).
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <variant>
#include <vector>

#include "intercept/session/copy/copy-end.h"
#include "intercept/session/copy/where.h"
#include "intercept/session/graph/captured-call.h"
#include "intercept/session/graph/graph-memory.h"
#include "intercept/session/launch-shape.h"

namespace vgpu::client {

class DeviceNode;
class Graph;

struct EmptyWork {};

struct KernelWork {
  uint64_t function = 0;  // virtual handle
  LaunchShape shape{};
  std::vector<std::byte> parameters;  // one block
  std::vector<CUlaunchAttribute> attributes;  // those that are set, except cooperation
  std::shared_ptr<DeviceNode> deviceNode;     // if it is device-updatable
  // As the program reads them: pointers to the parameters in the block, or a list of extra options with the block.
  std::vector<void*> pointers, extra;
  size_t blockBytes = 0;
};

// A copy as the program described it, and its interpretation when it was checked.
struct CopyWork {
  CUDA_MEMCPY3D given{};
  CopyEnd to, from;
  BoxSize size{};
  Where toWhere{}, fromWhere{};
};

struct FillWork {
  CUDA_MEMSET_NODE_PARAMS given{};
};

struct HostWork {
  CUDA_HOST_NODE_PARAMS given{};
};

struct EventWork {
  uint64_t event = 0;  // virtual handle
  bool waits = false;  // true: waits for the event; false: records it
};

struct MemOpsWork {
  unsigned flags = 0;
  std::vector<CUstreamBatchMemOpParams> operations;

  CUDA_BATCH_MEM_OP_NODE_PARAMS given() { return {nullptr, static_cast<unsigned>(operations.size()), operations.data(), flags}; }
};

struct ChildWork {
  std::shared_ptr<Graph> graph;  // the node's own copy

  CUgraph handle() const;
};

struct AllocWork {
  CUDA_MEM_ALLOC_NODE_PARAMS given{};
  std::shared_ptr<GraphMemory> memory;
};

struct FreeWork {
  std::shared_ptr<GraphMemory> memory;

  uint64_t address() { return memory->address; }
};

// Runs its bodies as a condition of the graph says. The node owns the bodies; the program may read the array of their handles.
struct ConditionalWork {
  uint64_t condition = 0;  // its number
  CUgraphConditionalNodeType type{};
  std::vector<std::shared_ptr<Graph>> bodies;
  std::shared_ptr<std::vector<CUgraph>> handles;
};

// The captured work of a library call: nodes that only the worker knows.
struct LibraryWork {
  std::shared_ptr<CapturedCall> call;
};

using NodeWork = std::variant<EmptyWork, KernelWork, CopyWork, FillWork, HostWork, EventWork, MemOpsWork, ChildWork, AllocWork,
                              FreeWork, ConditionalWork, LibraryWork>;

// Memory nodes of a graph, whose work cannot be changed.
inline bool isMemory(const NodeWork& work) {
  return std::holds_alternative<AllocWork>(work) || std::holds_alternative<FreeWork>(work);
}

// Which driver nodes and which part in the program's process a copy needs.
enum class CopyForm { onDevice, fromProgram, toProgram, inProgram };
inline CopyForm formOf(const CopyWork& copy) {
  const bool in = copy.fromWhere == Where::pageable, out = copy.toWhere == Where::pageable;
  return in && out ? CopyForm::inProgram : in ? CopyForm::fromProgram : out ? CopyForm::toProgram : CopyForm::onDevice;
}
inline bool isPageable(const CopyWork& copy) { return formOf(copy) != CopyForm::onDevice; }

// Whether the program's process executes a part of it at each launch.
inline bool runsOnHost(const NodeWork& work) {
  auto* copy = std::get_if<CopyWork>(&work);
  return std::holds_alternative<HostWork>(work) || (copy != nullptr && isPageable(*copy));
}
inline bool isRecord(const NodeWork& work) {
  auto* event = std::get_if<EventWork>(&work);
  return event != nullptr && !event->waits;
}

// Setting a node's parameters keeps its attributes, which are not among them.
inline void keepAttributes(NodeWork& work, const NodeWork& before) {
  auto* kernel = std::get_if<KernelWork>(&work);
  auto* now = std::get_if<KernelWork>(&before);
  if (kernel == nullptr || now == nullptr) return;
  kernel->attributes = now->attributes;
  kernel->deviceNode = now->deviceNode;
  kernel->shape.cooperative = now->shape.cooperative;
}

// nullptr unless it is a device-updatable kernel node.
inline std::shared_ptr<DeviceNode> deviceNodeOf(const NodeWork& work) {
  auto* kernel = std::get_if<KernelWork>(&work);
  return kernel == nullptr ? nullptr : kernel->deviceNode;
}

inline CUgraphNodeType typeOf(const NodeWork& work) {
  constexpr CUgraphNodeType types[] = {CU_GRAPH_NODE_TYPE_EMPTY,        CU_GRAPH_NODE_TYPE_KERNEL, CU_GRAPH_NODE_TYPE_MEMCPY,
                                       CU_GRAPH_NODE_TYPE_MEMSET,       CU_GRAPH_NODE_TYPE_HOST,   CU_GRAPH_NODE_TYPE_EVENT_RECORD,
                                       CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, CU_GRAPH_NODE_TYPE_GRAPH,  CU_GRAPH_NODE_TYPE_MEM_ALLOC,
                                       CU_GRAPH_NODE_TYPE_MEM_FREE,     CU_GRAPH_NODE_TYPE_CONDITIONAL, CU_GRAPH_NODE_TYPE_GRAPH};
  static_assert(std::size(types) == std::variant_size_v<NodeWork>);
  auto* event = std::get_if<EventWork>(&work);
  return event != nullptr && event->waits ? CU_GRAPH_NODE_TYPE_WAIT_EVENT : types[work.index()];
}

}  // namespace vgpu::client
