// What a snapshot keeps of executable graphs besides their recipes. Rows of: graph, a number, what, and words.
//
//   node, a method's name with its fields, its frame in hexadecimal   the last change of a node since the graph was instantiated
//   0, "upload"                                                       the graph is uploaded: kernels launch it as the rows before say
//   address, "handle"                                                 the handle by which kernels name the graph, or its node
//
// A row with the fields of another build's frame is not valid (isGraphRow).
#pragma once

#include "cuda-frames.h"
#include "stub/worker/kinds/graphs.h"
#include "stub/worker/kinds/kind.h"

namespace vgpu::stub {

bool isGraphRow(const Row& row, uint64_t devices);
Rows saveGraphs(SessionState& session);
// Visits graphs whose nodes kernels may have changed: the driver has no call that reads what such nodes do now.
void visitChangedNodes(SessionState& session, const Obstacle& visit);
void prepareGraphs(SessionState& session, const Rows& rows);
// While recipes are executed: a node whose own frame was refused, because it names an object that has ended, is added with its latest
// setting; graph.failure is the result. If it has not been set since, a fill or a copy that does nothing is added, as a disabled node.
// False if neither is possible.
bool addAsSet(Execution& on, uint64_t handle, uint64_t node, KnownGraph& graph, std::vector<CUgraphNode> before);
// Adds a kernel that does nothing in place of a node whose kernel's module has been unloaded: the node may be disabled, and a disabled node
// needs no kernel. It stays, because the program cannot enable the node, and setting another kernel makes the graph anew. Refuses while no
// recipes are executed, and if addAsSet() must be tried.
CUresult addPlaceholder(Execution& on, const api::FrameReader<api::Cuda::GraphKernelParams>& p, KnownGraph& graph, const NodePlace& place,
                        CUgraphNode& made);
// addPlaceholder() as a function of the driver's arguments.
inline auto placeholderOf(Execution& on, const api::FrameReader<api::Cuda::GraphKernelParams>& p, KnownGraph& graph) {
  return [&](CUgraphNode* node, CUgraph to, const CUgraphNode* before, size_t count) {
    return addPlaceholder(on, p, graph, {to, before, count}, *node);
  };
}
// Gives that device's fill and copy nodes that are placeholders their real parameters, if their memory exists by now: the program may
// register memory again, or allocate some at the same address, and launch the graph. CUDA's result: the first error.
CUresult setLate(Execution& on, KnownGraph& graph);
void compareHandles(SessionState& session, const Rows& rows);
void restoreGraphs(SessionState& session, const Rows& rows);

}  // namespace vgpu::stub
