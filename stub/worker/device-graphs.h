// Executable graphs that kernels launch, and nodes that kernels change (device-updatable nodes), of one GPU (stub/worker/kinds/graph.cc).
//
// A device-updatable node is first in a graph of its own, its holder, from the moment when the program makes it updatable. An executable
// graph with that node takes it over, and the holder gets it back when that graph is destroyed: the driver allows one copy of the node at a
// time.
#pragma once

#include "stub/worker/execution.h"
#include "stub/worker/kinds/graphs.h"

namespace vgpu::stub {

// Moves the node of the graph `holder`, a virtual handle, to `graph`. Waits for all work of the GPU if the executable graph that had the
// node has been destroyed but still runs.
CUresult moveDeviceNode(Execution& on, uint64_t holder, KnownGraph& graph, const NodePlace& place, const KernelNode& node,
                        CUgraphNode& made);
// The executable graph that had the node has been destroyed: `holder` gets a node again. If the driver does not return the node's handle,
// the holder stays without a node, and the next graph that needs it cannot be instantiated.
void takeBack(Execution& on, uint64_t holder);

// Instantiates a graph with `flags`; `handle` is its virtual handle. The driver's result, also stored in `params`.
CUresult instantiate(Execution& on, KnownGraph& graph, uint64_t handle, uint64_t flags, CUDA_GRAPH_INSTANTIATE_PARAMS& params);
// Notes that the frame being executed has set the node.
CUresult noteSet(Execution& on, KnownGraph& graph, KnownGraphNode& node);
// Whether the graph can be launched: no enabled node is a placeholder for a kernel whose module has been unloaded (addPlaceholder).
bool isLaunchable(const KnownGraph& graph);
// What has been set of its nodes is what kernels launch from now on (cuGraphUpload).
void noteUploaded(KnownGraph& graph);

}  // namespace vgpu::stub
