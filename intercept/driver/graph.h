// What the entries of graphs are: rows of vgpu/api/cuda.table name these functions. Each entry of a node's type is one of four
// functions for any type, with the parameters in the structure that CUDA has for all of them.
#pragma once

#include <cuda.h>

#include <functional>
#include <span>

#include "intercept/session/entry.h"
#include "intercept/session/graph/executable.h"
#include "intercept/session/graph/node-lists.h"
#include "intercept/session/graph/node-request.h"

namespace vgpu::client {

// ---- what a node does (graph-work.cc)
// Checks a request as CUDA does at once. CUDA's error for what cannot be a node.
CUresult describeNode(Thread& thread, const NodeRequest& request, NodeWork& work);
// The same for a node that is set: what is not among its parameters stays as it was.
CUresult describeChange(Thread& thread, const NodeRequest& request, const NodeWork& before, NodeWork& work);
CUresult describeConditional(Graphs& graphs, Graph& graph, const NodeRequest& request, NodeWork& work);
CUresult describeKernel(Thread& thread, CUfunction function, const LaunchShape& shape, std::span<const CUlaunchAttribute> attributes,
                        void** kernelParams, void** extra, KernelWork& work);  // launch.cc
// Whether a kernel's node may have the clusters that its attributes say, by the rule for launches.
CUresult checkClusters(Thread& thread, const KernelWork& work);  // launch.cc
CUresult allocateNode(Thread& thread, const CUDA_MEM_ALLOC_NODE_PARAMS& given, CUdeviceptr* address,
                      NodeWork& work);  // graph-memory.cc
CUresult freeNode(Session& session, CUdeviceptr address, NodeWork& work);
CUresult describeCopy(Session& session, const CUDA_MEMCPY3D& copy, CopyWork& work);  // copy.cc
// Operations of a stream on words of the session's memory, one behind the other, and a single one.
CUresult describeOperations(Thread& thread, std::span<const CUstreamBatchMemOpParams> all, unsigned flags, NodeWork& work);
CUresult describeOperation(Thread& thread, CUstreamBatchMemOpType type, CUdeviceptr address, cuuint64_t value, unsigned flags,
                           NodeWork& work);

// ---- graphs and nodes (graph.cc)
// nullptr if there is none.
inline auto findGraph(Thread& thread, CUgraph graph) { return thread.session.graphs.find(toWire(graph)); }
inline GraphNode* findNode(Thread& thread, CUgraphNode node) { return thread.session.graphs.findNode(toWire(node)); }

// Runs `body` with what a live node does, if that is of that type. CUDA_ERROR_INVALID_VALUE if there is none.
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
// What is kept of such a node.
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
// Without a graph, into a new one.
CUresult beginCapture(CUstream stream, CUgraph graph, const Dependencies& before, CUstreamCaptureMode mode);
CUresult endCapture(CUstream stream, CUgraph* graph);
CUresult captureInfo(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id, CUgraph* graph, const CUgraphNode** nodes,
                     const CUgraphEdgeData** edges, size_t* count);
CUresult setCaptureDependencies(CUstream stream, const Dependencies& nodes, unsigned flags);
CUresult exchangeCaptureMode(CUstreamCaptureMode* mode);

// ---- executable graphs (graph-exec.cc)
inline auto findExec(Thread& thread, CUgraphExec exec) { return Executable::find(thread, toWire(exec)); }
// Where the program is told what is wrong with a graph; null where it does not ask.
struct InstantiateReport {
  CUgraphNode* node = nullptr;
  CUgraphInstantiateResult* result = nullptr;
  char* log = nullptr;
  size_t logBytes = 0;
};
// `upload`: the stream, if the flags ask for an upload.
CUresult instantiate(CUgraphExec* exec, CUgraph graph, unsigned long long flags, CUstream upload,
                     const InstantiateReport& report);
CUresult graphLaunch(CUgraphExec exec, CUstream stream);
CUresult graphUpload(CUgraphExec exec, CUstream stream);
CUresult setNode(CUgraphExec exec, CUgraphNode node, const NodeRequest& request);
CUresult setEnabled(CUgraphExec exec, CUgraphNode node, unsigned enabled);
CUresult getEnabled(CUgraphExec exec, CUgraphNode node, unsigned* enabled);
// `from`: where the program gets the other end of an edge that is at fault; null where it does not ask.
CUresult updateExec(CUgraphExec exec, CUgraph graph, CUgraphNode* errorNode, CUgraphExecUpdateResult* result,
                    CUgraphNode* from = nullptr);

}  // namespace vgpu::client
