// What nodes of graphs do: CUDA's parameters, checked as CUDA does at once.
#include "intercept/driver/shared.h"

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

// Each word is the session's, and each operation one that cuStreamWriteValue… or cuStreamWaitValue… would take.
CUresult describe(Session& session, const CUDA_BATCH_MEM_OP_NODE_PARAMS_v2& p, NodeWork& work) {
  constexpr unsigned most = 256;  // cuda.h, cuStreamBatchMemOp
  bool isWrong = p.ctx == nullptr || p.count > most || (p.count != 0 && p.paramArray == nullptr) || p.flags != 0;
  if (isWrong) return CUDA_ERROR_INVALID_VALUE;
  MemOpsWork made{p.flags, {p.paramArray, p.paramArray + p.count}};
  for (auto& operation : made.operations) {
    uint64_t bytes = 4;
    switch (operation.operation) {
      case CU_STREAM_MEM_OP_WRITE_VALUE_64:
      case CU_STREAM_MEM_OP_WAIT_VALUE_64: bytes = 8; break;
      case CU_STREAM_MEM_OP_WRITE_VALUE_32:
      case CU_STREAM_MEM_OP_WAIT_VALUE_32: break;
      default: return CUDA_ERROR_INVALID_VALUE;
    }
    if (locate(session, operation.writeValue.address, bytes) == Where::nowhere) return CUDA_ERROR_INVALID_VALUE;
  }
  work = std::move(made);
  return CUDA_SUCCESS;
}

CUresult describe(Session& session, CUevent event, bool waits, NodeWork& work) {
  if (event == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (session.handles.find<api::Kind::EVENT>(toWire(event)) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  work = EventWork{toWire(event), waits};
  return CUDA_SUCCESS;
}

}  // namespace

CUresult describeNode(Thread& thread, const NodeRequest& request, NodeWork& work) {
  auto& params = request.params;
  Session& session = thread.session;
  if (!request.given) return CUDA_ERROR_INVALID_VALUE;
  switch (params.type) {
    case CU_GRAPH_NODE_TYPE_EMPTY: work = EmptyWork{}; return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_KERNEL: return describe(thread, params.kernel, work);
    case CU_GRAPH_NODE_TYPE_MEMCPY: return describeCopy(session, params.memcpy.copyParams, work.emplace<CopyWork>());
    case CU_GRAPH_NODE_TYPE_MEMSET: return describe(session, params.memset, work);
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP: return describe(session, params.memOp, work);
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT: return describe(session, params.eventWait.event, true, work);
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD: return describe(session, params.eventRecord.event, false, work);
    case CU_GRAPH_NODE_TYPE_HOST:
      if (params.host.fn == nullptr) return CUDA_ERROR_INVALID_VALUE;
      work = HostWork{{params.host.fn, params.host.userData}};
      return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_GRAPH: {
      auto child = session.graphs.find(toWire(params.graph.graph));
      if (child == nullptr) return CUDA_ERROR_INVALID_VALUE;
      if (!child->canBeCopied()) return CUDA_ERROR_NOT_SUPPORTED;
      work = ChildWork{child->clone()};
      return CUDA_SUCCESS;
    }
    case CU_GRAPH_NODE_TYPE_MEM_FREE: return freeNode(session, params.free.dptr, work);
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC: {
      auto& alloc = params.alloc;
      return allocateNode(thread, {alloc.poolProps, alloc.accessDescs, alloc.accessDescCount, alloc.bytesize, 0}, request.address, work);
    }
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL:
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT: return CUDA_ERROR_NOT_SUPPORTED;  // as the semaphores that they name
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

// A condition of the graph that no node has, and as many bodies as that type of node may have.
CUresult describeConditional(Graphs& graphs, Graph& graph, const NodeRequest& request, NodeWork& work) {
  constexpr unsigned most = 65000;  // of all that a graph may be made of (executable.cc)
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
