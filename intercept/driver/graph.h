// What the entries of graphs are: rows of vgpu/api/cuda.table name these functions. Each entry of a node's type is one of four
// functions for any type, with the parameters in the structure that CUDA has for all of them.
#pragma once

#include <cuda.h>

#include "intercept/session/graph/executable.h"

namespace vgpu::client {

// ---- what a node does (graph-work.cc)
// The parameters of any node. `given` is false if the program gave none.
struct NodeRequest {
  CUgraphNodeParams params{};
  bool given = true;
};
NodeRequest requestOf(const CUDA_KERNEL_NODE_PARAMS_v1* params);
NodeRequest requestOf(const CUDA_KERNEL_NODE_PARAMS* params);
NodeRequest requestOf(const CUDA_MEMCPY3D* params);
NodeRequest requestOf(const CUDA_MEMSET_NODE_PARAMS* params);
NodeRequest requestOf(const CUDA_HOST_NODE_PARAMS* params);
NodeRequest requestOf(const CUDA_BATCH_MEM_OP_NODE_PARAMS* params);
NodeRequest requestOf(const CUgraphNodeParams* params);
NodeRequest requestOf(CUgraphNodeType type, CUevent event);
NodeRequest requestOf(CUgraph child);
NodeRequest emptyNode();

// Checks it as CUDA does at once. CUDA's error for what cannot be a node.
CUresult describeNode(Thread& thread, const NodeRequest& request, NodeWork& work);
CUresult describeKernel(Thread& thread, CUfunction function, const LaunchShape& shape, void** kernelParams, void** extra,
                        KernelWork& work);  // launch.cc
CUresult describeCopy(Session& session, const CUDA_MEMCPY3D& copy, CopyWork& work);  // copy.cc

// ---- graphs and nodes (graph.cc)
struct Dependencies {
  const CUgraphNode* nodes;
  const CUgraphEdgeData* edges;
  size_t count;
};
// Room for a list, as CUDA answers one: without room its length alone, else as many as fit and how many there were.
struct NodeRoom {
  CUgraphNode* nodes;
  size_t* count;
  CUgraphEdgeData* edges = nullptr;
};

CUresult graphCreate(CUgraph* graph, unsigned flags);
CUresult graphDestroy(CUgraph graph);
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
CUresult printGraph(CUgraph graph, const char* path, unsigned flags);  // graph-print.cc

// Of live graphs' dependencies, as edges. CUDA_ERROR_INVALID_VALUE if one is no node of the graph, or twice there.
CUresult edgesOf(Graphs& graphs, const Graph& graph, const Dependencies& before, std::vector<GraphEdge>& edges);

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
