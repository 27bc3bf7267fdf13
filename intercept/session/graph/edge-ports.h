// Edges with ports: they let a node start before the kernel that it depends on has ended (cuda.h, CUgraphEdgeData).
#pragma once

#include <cuda.h>

namespace vgpu::client {

// From a kernel to a kernel that itself waits for it (cudaGridDependencySynchronize). The second starts when all blocks of the first have
// triggered it or ended (programmatic), or when they have started (launch order).
constexpr CUgraphEdgeData programmaticEdge{CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC, 0, CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC, {}};
constexpr CUgraphEdgeData programmaticOrderEdge{CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER, 0, CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC, {}};
// From a kernel to any node, which starts when all blocks of the kernel have started.
constexpr CUgraphEdgeData orderEdge{CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER, 0, CU_GRAPH_DEPENDENCY_TYPE_DEFAULT, {}};

constexpr bool isSame(const CUgraphEdgeData& a, const CUgraphEdgeData& b) {
  return a.from_port == b.from_port && a.to_port == b.to_port && a.type == b.type;
}
constexpr bool hasPort(const CUgraphEdgeData& data) { return !isSame(data, {}); }

// Whether such an edge is valid. `to`: null if the dependent node's type is not known yet.
constexpr bool isPossible(CUgraphNodeType from, const CUgraphNodeType* to, const CUgraphEdgeData& data) {
  for (unsigned char each : data.reserved)
    if (each != 0) return false;
  if (!hasPort(data)) return true;
  const bool toKernel = to == nullptr || *to == CU_GRAPH_NODE_TYPE_KERNEL;
  const bool isProgrammatic = isSame(data, programmaticEdge) || isSame(data, programmaticOrderEdge);
  return from == CU_GRAPH_NODE_TYPE_KERNEL && (isSame(data, orderEdge) || (isProgrammatic && toKernel));
}

}  // namespace vgpu::client
