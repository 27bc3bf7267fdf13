// Nodes whose parameters have the driver's layout: fills, host functions, child graphs, events, memory, semaphores.
#include "intercept/runtime/graph-node.h"

using namespace vgpu::runtime;

#define NODE_PLACE cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *dependencies, size_t count
#define PLACE node, graph, dependencies, count

RUNTIME(cudaGraphAddMemsetNode, (NODE_PLACE, const cudaMemsetParams* parameters),
        cuGraphAddMemsetNode(PLACE, same<CUDA_MEMSET_NODE_PARAMS>(parameters), thread.context))
RUNTIME(cudaGraphMemsetNodeGetParams, (cudaGraphNode_t node, cudaMemsetParams* parameters),
        cuGraphMemsetNodeGetParams(node, same<CUDA_MEMSET_NODE_PARAMS>(parameters)))
RUNTIME(cudaGraphMemsetNodeSetParams, (cudaGraphNode_t node, const cudaMemsetParams* parameters),
        cuGraphMemsetNodeSetParams(node, same<CUDA_MEMSET_NODE_PARAMS>(parameters)))
RUNTIME(cudaGraphExecMemsetNodeSetParams,
        (cudaGraphExec_t executable, cudaGraphNode_t node, const cudaMemsetParams* parameters),
        cuGraphExecMemsetNodeSetParams(executable, node, same<CUDA_MEMSET_NODE_PARAMS>(parameters), thread.context))

RUNTIME(cudaGraphAddHostNode, (NODE_PLACE, const cudaHostNodeParams* parameters),
        cuGraphAddHostNode(PLACE, same<CUDA_HOST_NODE_PARAMS>(parameters)))
RUNTIME(cudaGraphHostNodeGetParams, (cudaGraphNode_t node, cudaHostNodeParams* parameters),
        cuGraphHostNodeGetParams(node, same<CUDA_HOST_NODE_PARAMS>(parameters)))
RUNTIME(cudaGraphHostNodeSetParams, (cudaGraphNode_t node, const cudaHostNodeParams* parameters),
        cuGraphHostNodeSetParams(node, same<CUDA_HOST_NODE_PARAMS>(parameters)))
RUNTIME(cudaGraphExecHostNodeSetParams,
        (cudaGraphExec_t executable, cudaGraphNode_t node, const cudaHostNodeParams* parameters),
        cuGraphExecHostNodeSetParams(executable, node, same<CUDA_HOST_NODE_PARAMS>(parameters)))

RUNTIME(cudaGraphAddEmptyNode, (NODE_PLACE), cuGraphAddEmptyNode(PLACE))
RUNTIME(cudaGraphAddChildGraphNode, (NODE_PLACE, cudaGraph_t child), cuGraphAddChildGraphNode(PLACE, child))
RUNTIME(cudaGraphChildGraphNodeGetGraph, (cudaGraphNode_t node, cudaGraph_t* graph),
        cuGraphChildGraphNodeGetGraph(node, graph))
RUNTIME(cudaGraphExecChildGraphNodeSetParams, (cudaGraphExec_t executable, cudaGraphNode_t node, cudaGraph_t child),
        cuGraphExecChildGraphNodeSetParams(executable, node, child))

RUNTIME(cudaGraphAddEventRecordNode, (NODE_PLACE, cudaEvent_t event), cuGraphAddEventRecordNode(PLACE, event))
RUNTIME(cudaGraphEventRecordNodeGetEvent, (cudaGraphNode_t node, cudaEvent_t* event),
        cuGraphEventRecordNodeGetEvent(node, event))
RUNTIME(cudaGraphEventRecordNodeSetEvent, (cudaGraphNode_t node, cudaEvent_t event),
        cuGraphEventRecordNodeSetEvent(node, event))
RUNTIME(cudaGraphExecEventRecordNodeSetEvent, (cudaGraphExec_t executable, cudaGraphNode_t node, cudaEvent_t event),
        cuGraphExecEventRecordNodeSetEvent(executable, node, event))
RUNTIME(cudaGraphAddEventWaitNode, (NODE_PLACE, cudaEvent_t event), cuGraphAddEventWaitNode(PLACE, event))
RUNTIME(cudaGraphEventWaitNodeGetEvent, (cudaGraphNode_t node, cudaEvent_t* event),
        cuGraphEventWaitNodeGetEvent(node, event))
RUNTIME(cudaGraphEventWaitNodeSetEvent, (cudaGraphNode_t node, cudaEvent_t event),
        cuGraphEventWaitNodeSetEvent(node, event))
RUNTIME(cudaGraphExecEventWaitNodeSetEvent, (cudaGraphExec_t executable, cudaGraphNode_t node, cudaEvent_t event),
        cuGraphExecEventWaitNodeSetEvent(executable, node, event))

RUNTIME(cudaGraphAddMemAllocNode, (NODE_PLACE, cudaMemAllocNodeParams* parameters),
        cuGraphAddMemAllocNode(PLACE, same<CUDA_MEM_ALLOC_NODE_PARAMS>(parameters)))
RUNTIME(cudaGraphMemAllocNodeGetParams, (cudaGraphNode_t node, cudaMemAllocNodeParams* parameters),
        cuGraphMemAllocNodeGetParams(node, same<CUDA_MEM_ALLOC_NODE_PARAMS>(parameters)))
RUNTIME(cudaGraphAddMemFreeNode, (NODE_PLACE, void* memory), cuGraphAddMemFreeNode(PLACE, toDevice(memory)))
RUNTIME(cudaGraphMemFreeNodeGetParams, (cudaGraphNode_t node, void* memory),
        cuGraphMemFreeNodeGetParams(node, static_cast<CUdeviceptr*>(memory)))
RUNTIME_DEVICE(cudaDeviceGraphMemTrim, (int device), cuDeviceGraphMemTrim(device))
RUNTIME_DEVICE(cudaDeviceGetGraphMemAttribute, (int device, cudaGraphMemAttributeType attribute, void* value),
               cuDeviceGetGraphMemAttribute(device, static_cast<CUgraphMem_attribute>(attribute), value))
RUNTIME_DEVICE(cudaDeviceSetGraphMemAttribute, (int device, cudaGraphMemAttributeType attribute, void* value),
               cuDeviceSetGraphMemAttribute(device, static_cast<CUgraphMem_attribute>(attribute), value))
