// What the entries of graphs are: rows of vgpu/api/cuda.table name these functions. Each entry of a node's type is one of four
// functions for any type, with the parameters in the structure that CUDA has for all of them.
#pragma once

#include <cuda.h>

#include <span>

#include "intercept/session/graph/executable.h"
#include "intercept/session/graph/node-lists.h"
#include "intercept/session/graph/node-request.h"

namespace vgpu::client {

// ---- what a node does (graph-work.cc)
// Checks a request as CUDA does at once. CUDA's error for what cannot be a node.
CUresult describeNode(Thread& thread, const NodeRequest& request, NodeWork& work);
CUresult describeConditional(Graphs& graphs, Graph& graph, const NodeRequest& request, NodeWork& work);
CUresult describeKernel(Thread& thread, CUfunction function, const LaunchShape& shape, std::span<const CUlaunchAttribute> attributes,
                        void** kernelParams, void** extra, KernelWork& work);  // launch.cc
CUresult allocateNode(Thread& thread, const CUDA_MEM_ALLOC_NODE_PARAMS& given, CUdeviceptr* address,
                      NodeWork& work);  // graph-memory.cc
CUresult freeNode(Session& session, CUdeviceptr address, NodeWork& work);
CUresult describeCopy(Session& session, const CUDA_MEMCPY3D& copy, CopyWork& work);  // copy.cc

// ---- graphs and nodes (graph.cc)
CUresult graphCreate(CUgraph* graph, unsigned flags);
CUresult graphDestroy(CUgraph graph);
CUresult makeCondition(CUgraphConditionalHandle* handle, CUgraph graph, CUcontext context, unsigned value, unsigned flags);
CUresult graphClone(CUgraph* clone, CUgraph graph);
CUresult findInClone(CUgraphNode* node, CUgraphNode original, CUgraph clone);
CUresult addNode(CUgraphNode* node, CUgraph graph, const Dependencies& before, const NodeRequest& request);
CUresult setNode(CUgraphNode node, const NodeRequest& request);
CUresult destroyNode(CUgraphNode node);
CUresult getNode(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v1* params);
CUresult getNode(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS* params);
CUresult getNode(CUgraphNode node, CUDA_MEMCPY3D* params);
CUresult getNode(CUgraphNode node, CUDA_MEMSET_NODE_PARAMS* params);
CUresult getNode(CUgraphNode node, CUDA_HOST_NODE_PARAMS* params);
CUresult getNode(CUgraphNode node, CUDA_BATCH_MEM_OP_NODE_PARAMS* params);
CUresult getNode(CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS* params);
CUresult getNode(CUgraphNode node, CUdeviceptr* freed);
CUresult getEvent(CUgraphNode node, CUgraphNodeType type, CUevent* event);
CUresult getChild(CUgraphNode node, CUgraph* graph);
CUresult getType(CUgraphNode node, CUgraphNodeType* type);
CUresult listNodes(CUgraph graph, const NodeRoom& room);
CUresult listRoots(CUgraph graph, const NodeRoom& room);
CUresult listEdges(CUgraph graph, CUgraphNode* from, CUgraphNode* to, CUgraphEdgeData* edges, size_t* count);
CUresult listDependencies(CUgraphNode node, const NodeRoom& room);
CUresult listDependents(CUgraphNode node, const NodeRoom& room);
CUresult changeEdges(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to, const CUgraphEdgeData* edges, size_t count,
                     bool add);
CUresult getAttribute(CUgraphNode node, CUkernelNodeAttrID attribute, CUkernelNodeAttrValue* value);
CUresult setAttribute(CUgraphNode node, CUkernelNodeAttrID attribute, const CUkernelNodeAttrValue* value);
CUresult copyAttributes(CUgraphNode to, CUgraphNode from);
CUresult printGraph(CUgraph graph, const char* path);

// ---- memory and user objects (graph-memory.cc)
CUresult getGraphMemory(CUdevice device, CUgraphMem_attribute attribute, void* value);
CUresult setGraphMemory(CUdevice device, CUgraphMem_attribute attribute, void* value);
CUresult makeUserObject(CUuserObject* object, void* data, CUhostFn destroy, unsigned count, unsigned flags);
CUresult countUserObject(CUuserObject object, unsigned count, bool retains);
CUresult holdUserObject(CUgraph graph, CUuserObject object, unsigned count, unsigned flags);
CUresult dropUserObject(CUgraph graph, CUuserObject object, unsigned count);

// ---- capture (capture.cc)
CUresult beginCapture(CUstream stream, CUstreamCaptureMode mode);
CUresult beginCapture(CUstream stream, CUgraph graph, const Dependencies& before, CUstreamCaptureMode mode);
CUresult endCapture(CUstream stream, CUgraph* graph);
CUresult captureInfo(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id, CUgraph* graph, const CUgraphNode** nodes,
                     const CUgraphEdgeData** edges, size_t* count);
CUresult setCaptureDependencies(CUstream stream, const Dependencies& nodes, unsigned flags);
CUresult exchangeCaptureMode(CUstreamCaptureMode* mode);

// ---- executable graphs (graph-exec.cc)
CUresult instantiate(CUgraphExec* exec, CUgraph graph, unsigned long long flags);
CUresult instantiateWith(CUgraphExec* exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS* params);
CUresult instantiateLogged(CUgraphExec* exec, CUgraph graph, CUgraphNode* errorNode, char* log, size_t bytes);
CUresult graphLaunch(CUgraphExec exec, CUstream stream);
CUresult graphUpload(CUgraphExec exec, CUstream stream);
CUresult endExec(CUgraphExec exec);
CUresult execFlags(CUgraphExec exec, cuuint64_t* flags);
CUresult setNode(CUgraphExec exec, CUgraphNode node, const NodeRequest& request);
CUresult setEnabled(CUgraphExec exec, CUgraphNode node, unsigned enabled);
CUresult getEnabled(CUgraphExec exec, CUgraphNode node, unsigned* enabled);
CUresult updateExec(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo* info);
CUresult updateExec(CUgraphExec exec, CUgraph graph, CUgraphNode* errorNode, CUgraphExecUpdateResult* result);

}  // namespace vgpu::client
