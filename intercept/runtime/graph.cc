// Graphs as a whole: creating, combining, instantiating, launching.
#include "intercept/runtime/convert.h"
#include "intercept/runtime/rows.h"

namespace vgpu::runtime {
namespace {

static_assert(static_cast<int>(cudaGraphInstantiateFlagUseNodePriority) ==
              CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY);
static_assert(static_cast<int>(cudaGraphNodeTypeConditional) == CU_GRAPH_NODE_TYPE_CONDITIONAL);
static_assert(static_cast<int>(cudaGraphExecUpdateErrorAttributesChanged) ==
              CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED);

CUresult instantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long flags) {
  return cuGraphInstantiateWithFlags(executable, graph, flags);
}

/// The upload stream in `parameters` is taken in the caller's default-stream flavour.
template <class On>
CUresult instantiateWith(cudaGraphExec_t* executable, cudaGraph_t graph, cudaGraphInstantiateParams* parameters,
                         On on) {
  if (parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
  cudaStream_t meant = parameters->uploadStream;
  if ((parameters->flags & cudaGraphInstantiateFlagUpload) != 0) parameters->uploadStream = on(meant);
  CUresult result = cuGraphInstantiateWithParams(executable, graph, same<CUDA_GRAPH_INSTANTIATE_PARAMS>(parameters));
  parameters->uploadStream = meant;
  return result;
}

/// The condition's graph runs in the thread's current context.
CUresult createCondition(cudaGraphConditionalHandle* handle, cudaGraph_t graph, unsigned value, unsigned flags) {
  return cuGraphConditionalHandleCreate(same<CUgraphConditionalHandle>(handle), graph, thread.context, value, flags);
}

}  // namespace
}  // namespace vgpu::runtime

using namespace vgpu::runtime;

RUNTIME(cudaGraphCreate, (cudaGraph_t * graph, unsigned flags), cuGraphCreate(graph, flags))
RUNTIME(cudaGraphDestroy, (cudaGraph_t graph), cuGraphDestroy(graph))
RUNTIME(cudaGraphClone, (cudaGraph_t * clone, cudaGraph_t original), cuGraphClone(clone, original))
RUNTIME(cudaGraphNodeFindInClone, (cudaGraphNode_t * node, cudaGraphNode_t original, cudaGraph_t clone),
        cuGraphNodeFindInClone(node, original, clone))
RUNTIME(cudaGraphDebugDotPrint, (cudaGraph_t graph, const char* path, unsigned flags),
        cuGraphDebugDotPrint(graph, path, flags))

RUNTIME(cudaGraphGetNodes, (cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count),
        cuGraphGetNodes(graph, nodes, count))
RUNTIME(cudaGraphGetRootNodes, (cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count),
        cuGraphGetRootNodes(graph, nodes, count))
RUNTIME(cudaGraphGetEdges,
        (cudaGraph_t graph, cudaGraphNode_t* from, cudaGraphNode_t* to, cudaGraphEdgeData* edges, size_t* count),
        cuGraphGetEdges(graph, from, to, same<CUgraphEdgeData>(edges), count))
RUNTIME(cudaGraphNodeGetDependencies,
        (cudaGraphNode_t node, cudaGraphNode_t* dependencies, cudaGraphEdgeData* edges, size_t* count),
        cuGraphNodeGetDependencies(node, dependencies, same<CUgraphEdgeData>(edges), count))
RUNTIME(cudaGraphNodeGetDependentNodes,
        (cudaGraphNode_t node, cudaGraphNode_t* dependents, cudaGraphEdgeData* edges, size_t* count),
        cuGraphNodeGetDependentNodes(node, dependents, same<CUgraphEdgeData>(edges), count))
RUNTIME(cudaGraphAddDependencies,
        (cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to, const cudaGraphEdgeData* edges,
         size_t count),
        cuGraphAddDependencies(graph, from, to, same<CUgraphEdgeData>(edges), count))
RUNTIME(cudaGraphRemoveDependencies,
        (cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to, const cudaGraphEdgeData* edges,
         size_t count),
        cuGraphRemoveDependencies(graph, from, to, same<CUgraphEdgeData>(edges), count))
RUNTIME(cudaGraphNodeGetType, (cudaGraphNode_t node, cudaGraphNodeType* type),
        cuGraphNodeGetType(node, same<CUgraphNodeType>(type)))
RUNTIME(cudaGraphDestroyNode, (cudaGraphNode_t node), cuGraphDestroyNode(node))

RUNTIME(cudaGraphInstantiate, (cudaGraphExec_t * executable, cudaGraph_t graph, unsigned long long flags),
        instantiate(executable, graph, flags))
RUNTIME(cudaGraphInstantiateWithFlags, (cudaGraphExec_t * executable, cudaGraph_t graph, unsigned long long flags),
        instantiate(executable, graph, flags))
RUNTIME_STREAM(cudaGraphInstantiateWithParams,
               (cudaGraphExec_t * executable, cudaGraph_t graph, cudaGraphInstantiateParams* parameters),
               instantiateWith(executable, graph, parameters, on))
RUNTIME(cudaGraphExecGetFlags, (cudaGraphExec_t executable, unsigned long long* flags),
        cuGraphExecGetFlags(executable, same<cuuint64_t>(flags)))
RUNTIME(cudaGraphExecUpdate, (cudaGraphExec_t executable, cudaGraph_t graph, cudaGraphExecUpdateResultInfo* info),
        cuGraphExecUpdate(executable, graph, same<CUgraphExecUpdateResultInfo>(info)))
RUNTIME(cudaGraphExecDestroy, (cudaGraphExec_t executable), cuGraphExecDestroy(executable))
RUNTIME_STREAM(cudaGraphUpload, (cudaGraphExec_t executable, cudaStream_t stream),
               cuGraphUpload(executable, on(stream)))
RUNTIME_STREAM(cudaGraphLaunch, (cudaGraphExec_t executable, cudaStream_t stream),
               cuGraphLaunch(executable, on(stream)))
RUNTIME(cudaGraphNodeSetEnabled, (cudaGraphExec_t executable, cudaGraphNode_t node, unsigned enabled),
        cuGraphNodeSetEnabled(executable, node, enabled))
RUNTIME(cudaGraphNodeGetEnabled, (cudaGraphExec_t executable, cudaGraphNode_t node, unsigned* enabled),
        cuGraphNodeGetEnabled(executable, node, enabled))
RUNTIME(cudaGraphConditionalHandleCreate,
        (cudaGraphConditionalHandle * handle, cudaGraph_t graph, unsigned value, unsigned flags),
        createCondition(handle, graph, value, flags))

RUNTIME(cudaUserObjectCreate,
        (cudaUserObject_t * object, void* data, cudaHostFn_t destroy, unsigned count, unsigned flags),
        cuUserObjectCreate(object, data, destroy, count, flags))
RUNTIME(cudaUserObjectRetain, (cudaUserObject_t object, unsigned count), cuUserObjectRetain(object, count))
RUNTIME(cudaUserObjectRelease, (cudaUserObject_t object, unsigned count), cuUserObjectRelease(object, count))
RUNTIME(cudaGraphRetainUserObject, (cudaGraph_t graph, cudaUserObject_t object, unsigned count, unsigned flags),
        cuGraphRetainUserObject(graph, object, count, flags))
RUNTIME(cudaGraphReleaseUserObject, (cudaGraph_t graph, cudaUserObject_t object, unsigned count),
        cuGraphReleaseUserObject(graph, object, count))
