// The work of graph nodes: CUDA's parameters, with the checks that CUDA makes immediately.
#include "cuda-described.h"
#include "intercept/driver/shared.h"
#include "intercept/session/packed.h"

namespace vgpu::client {

namespace {

CUresult describe(Thread& thread, const CUDA_KERNEL_NODE_PARAMS_v3& p, NodeWork& work) {
  CUfunction function = p.func;
  if (function == nullptr && p.kern != nullptr)
    if (CUresult error = cuKernelGetFunction(&function, p.kern)) return error;
  if (function == nullptr) return CUDA_ERROR_INVALID_VALUE;
  LaunchShape shape{p.gridDimX, p.gridDimY, p.gridDimZ, p.blockDimX, p.blockDimY, p.blockDimZ, p.sharedMemBytes};
  return describeKernel(thread, function, shape, {}, p.kernelParams, p.extra, work.emplace<KernelWork>());
}

CUresult describe(Session& session, const CUDA_MEMSET_NODE_PARAMS_v2& p, NodeWork& work) {
  bool isElement = p.elementSize == 1 || p.elementSize == 2 || p.elementSize == 4;
  if (!isElement || p.width == 0 || p.height == 0) return CUDA_ERROR_INVALID_VALUE;
  if (CUresult bad = checkFill(session, p.dst, p.pitch, p.elementSize, p.width, p.height)) return bad;
  work = FillWork{{p.dst, p.pitch, p.value, p.elementSize, p.width, p.height}};
  return CUDA_SUCCESS;
}

CUresult describe(Session& session, CUevent event, bool waits, NodeWork& work) {
  if (event == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (session.handles.find<api::Kind::EVENT>(toWire(event)) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  work = EventWork{toWire(event), waits};
  return CUDA_SUCCESS;
}

}  // namespace

// Each operation must be one that cuStreamBatchMemOp accepts.
CUresult describeOperations(Thread& thread, std::span<const CUstreamBatchMemOpParams> all, unsigned flags, NodeWork& work) {
  Packed checked;
  if (all.size() > 256 || flags != 0) return CUDA_ERROR_INVALID_VALUE;  // cuda.h, cuStreamBatchMemOp
  CUresult bad = checked.add(thread, api::described::CUstreamBatchMemOpParams_v1, all.data(), all.size(), false);
  if (bad == CUDA_SUCCESS) work = MemOpsWork{flags, {all.begin(), all.end()}};
  return bad;
}

CUresult describeOperation(Thread& thread, CUstreamBatchMemOpType type, CUdeviceptr address, cuuint64_t value, unsigned flags,
                           NodeWork& work) {
  CUstreamBatchMemOpParams one{};
  auto& either = one.writeValue;  // waitValue has the same members
  either.operation = type;
  either.address = address;
  either.value64 = value;
  either.flags = flags;
  return describeOperations(thread, {&one, 1}, 0, work);
}

CUresult describeNode(Thread& thread, const NodeRequest& request, NodeWork& work) {
  auto& params = request.params;
  Session& session = thread.session;
  if (!request.given) return CUDA_ERROR_INVALID_VALUE;
  switch (params.type) {
    case CU_GRAPH_NODE_TYPE_EMPTY: work = EmptyWork{}; return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_KERNEL: return describe(thread, params.kernel, work);
    case CU_GRAPH_NODE_TYPE_MEMCPY: return describeCopy(session, params.memcpy.copyParams, work.emplace<CopyWork>());
    case CU_GRAPH_NODE_TYPE_MEMSET: return describe(session, params.memset, work);
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP: {
      auto& words = params.memOp;
      if (words.ctx == nullptr) return CUDA_ERROR_INVALID_VALUE;
      return describeOperations(thread, {words.paramArray, words.count}, words.flags, work);
    }
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT: return describe(session, params.eventWait.event, true, work);
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD: return describe(session, params.eventRecord.event, false, work);
    case CU_GRAPH_NODE_TYPE_HOST:
      if (params.host.fn == nullptr) return CUDA_ERROR_INVALID_VALUE;
      work = HostWork{{params.host.fn, params.host.userData}};
      return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_GRAPH: {
      auto child = session.graphs.find(toWire(params.graph.graph));
      if (child == nullptr) return CUDA_ERROR_INVALID_VALUE;
      if (!child->canBeCopied() || isMove(request)) return CUDA_ERROR_NOT_SUPPORTED;  // a graph that is added can be moved instead
      work = ChildWork{child->clone()};
      return CUDA_SUCCESS;
    }
    case CU_GRAPH_NODE_TYPE_MEM_FREE: return freeNode(session, params.free.dptr, work);
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC: {
      auto& alloc = params.alloc;
      return allocateNode(thread, {alloc.poolProps, alloc.accessDescs, alloc.accessDescCount, alloc.bytesize, 0}, request.address, work);
    }
    case CU_GRAPH_NODE_TYPE_CONDITIONAL: return CUDA_ERROR_NOT_SUPPORTED;  // a condition can be added, but not changed
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL:
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT: return CUDA_ERROR_NOT_SUPPORTED;  // as for the semaphores that they name
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult describeChange(Thread& thread, const NodeRequest& request, const NodeWork& before, NodeWork& work) {
  if (CUresult bad = describeNode(thread, request, work)) return bad;
  keepAttributes(work, before);
  auto* kernel = std::get_if<KernelWork>(&work);
  return kernel == nullptr ? CUDA_SUCCESS : checkClusters(thread, *kernel);
}

// The condition must be one of the graph that no node uses yet, and the number of bodies one that the node's type allows.
CUresult describeConditional(Graphs& graphs, Graph& graph, const NodeRequest& request, NodeWork& work) {
  constexpr unsigned most = 65000;  // the limit for everything in a graph (executable.cc)
  auto& p = request.params.conditional;
  Condition* condition = graph.conditions->find(p.handle);
  const unsigned largest = p.type == CU_GRAPH_COND_TYPE_IF ? 2 : p.type == CU_GRAPH_COND_TYPE_WHILE ? 1 : UINT32_MAX;
  const bool isType = p.type >= CU_GRAPH_COND_TYPE_IF && p.type <= CU_GRAPH_COND_TYPE_SWITCH;
  if (condition == nullptr || condition->isUsed || !isType || p.size == 0 || p.size > largest || p.ctx == nullptr)
    return CUDA_ERROR_INVALID_VALUE;
  if (p.size > most) return CUDA_ERROR_OUT_OF_MEMORY;
  condition->isUsed = true;
  ConditionalWork made{p.handle, p.type, {}, std::make_shared<std::vector<CUgraph>>()};
  for (unsigned i = 0; i < p.size; ++i) {
    made.bodies.push_back(graphs.makeBody(graph.conditions));
    made.handles->push_back(fromWire<CUgraph>(graphs.lend(*made.bodies.back())));
  }
  *request.bodies = made.handles->data();
  work = std::move(made);
  return CUDA_SUCCESS;
}

}  // namespace vgpu::client
