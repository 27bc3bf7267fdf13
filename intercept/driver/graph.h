// The functions that implement graph entries: rows of vgpu/api/cuda.table name them. The entries for a node type call one of four functions
// that serve every type, which take the parameters in CUDA's structure for all types.
#pragma once

#include <cuda.h>

#include <functional>
#include <span>

#include "intercept/session/entry.h"
#include "intercept/session/graph/executable.h"
#include "intercept/session/graph/node-lists.h"
#include "intercept/session/graph/node-request.h"

namespace vgpu::client {

// ---- the work of a node (graph-work.cc)
// Makes the checks that CUDA makes immediately. CUDA's error if the request cannot become a node.
CUresult describeNode(Thread& thread, const NodeRequest& request, NodeWork& work);
// The same for changing a node: what the parameters do not include is kept from `before`.
CUresult describeChange(Thread& thread, const NodeRequest& request, const NodeWork& before, NodeWork& work);
CUresult describeConditional(Graphs& graphs, Graph& graph, const NodeRequest& request, NodeWork& work);
CUresult describeKernel(Thread& thread, CUfunction function, const LaunchShape& shape, std::span<const CUlaunchAttribute> attributes,
                        void** kernelParams, void** extra, KernelWork& work);  // launch.cc
// Whether a kernel node may have the clusters that its attributes request, by the rule for launches.
CUresult checkClusters(Thread& thread, const KernelWork& work);  // launch.cc
CUresult allocateNode(Thread& thread, const CUDA_MEM_ALLOC_NODE_PARAMS& given, CUdeviceptr* address,
                      NodeWork& work);  // graph-memory.cc
CUresult freeNode(Session& session, CUdeviceptr address, NodeWork& work);
CUresult describeCopy(Session& session, const CUDA_MEMCPY3D& copy, CopyWork& work);  // copy.cc
// Stream memory operations on words of the session's memory: several in order, and a single one.
CUresult describeOperations(Thread& thread, std::span<const CUstreamBatchMemOpParams> all, unsigned flags, NodeWork& work);
CUresult describeOperation(Thread& thread, CUstreamBatchMemOpType type, CUdeviceptr address, cuuint64_t value, unsigned flags,
                           NodeWork& work);

// ---- graphs and nodes (graph.cc)
// nullptr if the handle is not a live graph.
inline auto findGraph(Thread& thread, CUgraph graph) { return thread.session.graphs.find(toWire(graph)); }
inline GraphNode* findNode(Thread& thread, CUgraphNode node) { return thread.session.graphs.findNode(toWire(node)); }

// Runs `body` with the work of a live node of that type; CUDA_ERROR_INVALID_VALUE if `node` is not one.
template <typename Work, typename Body>
CUresult onWork(CUgraphNode node, const void* out, Body&& body) {
  return enterAny([&](Thread& thread) -> CUresult {
    GraphNode* found = findNode(thread, node);
    auto* work = found == nullptr ? nullptr : std::get_if<Work>(&found->work);
    if (out == nullptr || work == nullptr) return CUDA_ERROR_INVALID_VALUE;
    body(thread, *work);
    return CUDA_SUCCESS;
  });
}
// Returns a member of the node's work.
template <typename Out, typename Work, typename Kept>
CUresult getNode(CUgraphNode node, Out* out, Kept Work::*kept) {
  return onWork<Work>(node, out, [&](Thread&, Work& work) { *out = std::invoke(kept, work); });
}
CUresult getKernelNode(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v1* params);
CUresult getKernelNode(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS* params);
CUresult getEvent(CUgraphNode node, CUgraphNodeType type, CUevent* event);

CUresult graphDestroy(CUgraph graph);
inline CUgraphConditionalHandle addCondition(Graph& graph, unsigned value, unsigned flags) { return graph.conditions->add(value, flags); }
CUresult findInClone(CUgraphNode* node, CUgraphNode original, CUgraph clone);
CUresult addNode(CUgraphNode* node, CUgraph graph, const Dependencies& before, const NodeRequest& request);
CUresult setNode(CUgraphNode node, const NodeRequest& request);
CUresult destroyNode(CUgraphNode node);
CUresult listEdges(CUgraph graph, CUgraphNode* from, CUgraphNode* to, CUgraphEdgeData* edges, size_t* count);
CUresult changeEdges(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to, const CUgraphEdgeData* edges, size_t count,
                     bool add);
CUresult getNodeAttribute(CUgraphNode node, CUkernelNodeAttrID attribute, CUkernelNodeAttrValue* value);
CUresult setNodeAttribute(CUgraphNode node, CUkernelNodeAttrID attribute, const CUkernelNodeAttrValue* value);

// ---- user objects (graph-memory.cc)
CUresult makeUserObject(CUuserObject* object, void* data, CUhostFn destroy, unsigned count, unsigned flags);
CUresult countUserObject(CUuserObject object, unsigned count, bool retains);
CUresult countHeldObject(CUgraph graph, CUuserObject object, unsigned count, unsigned flags, bool retains);

// ---- capture (capture.cc)
// Captures into `graph`, or into a new graph if it is null.
CUresult beginCapture(CUstream stream, CUgraph graph, const Dependencies& before, CUstreamCaptureMode mode);
CUresult endCapture(CUstream stream, CUgraph* graph);
CUresult captureInfo(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id, CUgraph* graph, const CUgraphNode** nodes,
                     const CUgraphEdgeData** edges, size_t* count);
CUresult setCaptureDependencies(CUstream stream, const Dependencies& nodes, unsigned flags);
CUresult exchangeCaptureMode(CUstreamCaptureMode* mode);

// ---- executable graphs (graph-exec.cc)
inline auto findExec(Thread& thread, CUgraphExec exec) { return Executable::find(thread, toWire(exec)); }
// Where the program wants to be told what is wrong with a graph; null or 0 for what it does not ask.
struct InstantiateReport {
  CUgraphNode* node = nullptr;
  CUgraphInstantiateResult* result = nullptr;
  char* log = nullptr;
  size_t logBytes = 0;
};
// `upload`: the stream of the upload, if the flags ask for one.
CUresult instantiate(CUgraphExec* exec, CUgraph graph, unsigned long long flags, CUstream upload,
                     const InstantiateReport& report);
CUresult graphLaunch(CUgraphExec exec, CUstream stream);
CUresult graphUpload(CUgraphExec exec, CUstream stream);
CUresult setNode(CUgraphExec exec, CUgraphNode node, const NodeRequest& request);
CUresult setEnabled(CUgraphExec exec, CUgraphNode node, unsigned enabled);
CUresult getEnabled(CUgraphExec exec, CUgraphNode node, unsigned* enabled);
// `from`: receives the source node of the edge at fault; may be null.
CUresult updateExec(CUgraphExec exec, CUgraph graph, CUgraphNode* errorNode, CUgraphExecUpdateResult* result,
                    CUgraphNode* from = nullptr);

}  // namespace vgpu::client
