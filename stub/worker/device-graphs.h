// Graphs that kernels launch, and nodes that kernels change, among the executable graphs of a GPU (stub/worker/kinds/graph.cc).
//
// A node that kernels change is in a graph of its own, its holder, from the moment when the program makes it one. An executable graph
// with that node takes it over, and the holder has it back when that graph has ended: of one node the driver has one at a time.
#pragma once

#include "stub/worker/execution.h"
#include "stub/worker/kinds/graphs.h"

namespace vgpu::stub {

// Moves the node of the graph `holder`, a virtual handle, to `graph`. Waits for all work of the GPU if the graph that had it has ended
// and still runs.
CUresult moveDeviceNode(Execution& on, uint64_t holder, KnownGraph& graph, const NodePlace& place, const KernelNode& node,
                        CUgraphNode& made);
// The graph that had it has been destroyed. Without it, if the driver gives its handle to nobody: then the next graph cannot be made.
void takeBack(Execution& on, uint64_t holder);

// Instantiates a graph as those flags say, `handle` its virtual one. The driver's answer, which is in `params` too.
CUresult instantiate(Execution& on, KnownGraph& graph, uint64_t handle, uint64_t flags, CUDA_GRAPH_INSTANTIATE_PARAMS& params);
// The frame that is being executed has set the node.
CUresult noteSet(Execution& on, KnownGraph& graph, KnownGraphNode& node);
// Whether it can be launched: no node that is enabled has a placeholder for a kernel whose module has ended (addPlaceholder).
bool isLaunchable(const KnownGraph& graph);
// What has been set of its nodes is what kernels launch from now on.
void noteUploaded(KnownGraph& graph);

}  // namespace vgpu::stub
