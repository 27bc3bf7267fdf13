// What a snapshot keeps of executable graphs besides their recipes, as rows: graph, a number, what, and words.
//
//   node, a method's name with its fields, its frame in hexadecimal   what has been set of a node since the graph was instantiated
//   0, "upload"                                                       the graph is uploaded: kernels launch it as the rows before say
//   address, "handle"                                                 by which kernels know the graph, or its node
//
// Another build's frame of other fields is no such row.
#pragma once

#include "cuda-frames.h"
#include "stub/worker/kinds/graphs.h"
#include "stub/worker/kinds/kind.h"

namespace vgpu::stub {

bool isGraphRow(const Row& row, uint64_t devices);
Rows saveGraphs(SessionState& session);
// Graphs whose nodes kernels may have changed: the driver tells nobody what they do now.
void visitChangedNodes(SessionState& session, const Obstacle& visit);
void prepareGraphs(SessionState& session, const Rows& rows);
// Adds a node as it has been set last instead, because what its own frame names has ended: graph.failure is the result. If it has not been
// set since, a fill or a copy that does nothing, as a disabled node. False if neither can be done.
bool addAsSet(Execution& on, uint64_t handle, uint64_t node, KnownGraph& graph, std::vector<CUgraphNode> before);
// Adds a kernel that does nothing as that node, whose own kernel's module has ended: a disabled node need not do anything. It stays as it
// is, for the program cannot enable it, and makes the graph anew when it sets another kernel. Refuses while no recipes are executed, and
// where addAsSet() is to be tried.
CUresult addPlaceholder(Execution& on, const api::FrameReader<api::Cuda::GraphKernelParams>& p, KnownGraph& graph, const NodePlace& place,
                        CUgraphNode& made);
// The same as a function for the driver's arguments.
inline auto placeholderOf(Execution& on, const api::FrameReader<api::Cuda::GraphKernelParams>& p, KnownGraph& graph) {
  return [&](CUgraphNode* node, CUgraph to, const CUgraphNode* before, size_t count) {
    return addPlaceholder(on, p, graph, {to, before, count}, *node);
  };
}
// Sets what fills and copies there are placeholders for, of the nodes of that device, if their memory is there by now: the program may
// register memory again, or allocate some at the same address, and launch the graph. CUDA's first answer that is none of success.
CUresult setLate(Execution& on, KnownGraph& graph);
void compareHandles(SessionState& session, const Rows& rows);
void restoreGraphs(SessionState& session, const Rows& rows);

}  // namespace vgpu::stub
