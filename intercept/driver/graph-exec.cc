// Executable graphs (intercept/session/graph/executable.h).
#include "intercept/driver/shared.h"

namespace vgpu::client {

namespace {

template <typename Body>
CUresult onExec(CUgraphExec exec, Body&& body) {
  return enter([&](Thread& thread) -> CUresult {
    auto found = Executable::find(thread, toWire(exec));
    return found == nullptr ? CUDA_ERROR_INVALID_VALUE : body(thread, *found);
  });
}

constexpr unsigned long long knownFlags = CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD |
                                          CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;

CUresult instantiate(CUgraphExec* exec, CUgraph graph, unsigned long long flags, CUstream upload, Executable::Problem& problem) {
  return enter([&](Thread& thread) -> CUresult {
    auto found = thread.session.graphs.find(toWire(graph));
    if (exec == nullptr || found == nullptr || (flags & ~knownFlags) != 0) return CUDA_ERROR_INVALID_VALUE;
    if ((flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) != 0) return CUDA_ERROR_NOT_SUPPORTED;
    uint64_t made = 0, stream = toWire(upload);
    if (CUresult bad = thread.resolve(api::Kind::STREAM, true, stream)) return bad;
    if (CUresult error = Executable::instantiate(thread, *found, flags, made, problem)) return error;
    *exec = fromWire<CUgraphExec>(made);
    bool uploads = (flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD) != 0;
    return uploads ? Executable::find(thread, made)->upload(thread, stream) : CUDA_SUCCESS;
  });
}

}  // namespace

CUresult instantiate(CUgraphExec* exec, CUgraph graph, unsigned long long flags) {
  if ((flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD) != 0) return CUDA_ERROR_INVALID_VALUE;  // it needs a stream
  Executable::Problem problem;
  return instantiate(exec, graph, flags, nullptr, problem);
}

CUresult instantiateWith(CUgraphExec* exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS* params) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Executable::Problem problem;
  CUresult result = instantiate(exec, graph, params->flags, params->hUploadStream, problem);
  params->hErrNode_out = fromWire<CUgraphNode>(problem.node);
  params->result_out = result == CUDA_SUCCESS ? CUDA_GRAPH_INSTANTIATE_SUCCESS : problem.instantiate;
  return result;
}

CUresult instantiateLogged(CUgraphExec* exec, CUgraph graph, CUgraphNode* errorNode, char* log, size_t bytes) {
  Executable::Problem problem;
  CUresult result = instantiate(exec, graph, 0, nullptr, problem);
  if (errorNode != nullptr) *errorNode = fromWire<CUgraphNode>(problem.node);
  if (log != nullptr && bytes != 0) *log = 0;
  return result;
}

CUresult graphLaunch(CUgraphExec exec, CUstream hStream) {
  return onExec(exec, [&](Thread&, Executable& found) {
    return onStream(hStream, [&](Thread& thread, uint64_t stream) {
      return finishLaunch(thread, stream, found.launch(thread, stream));
    });
  });
}

CUresult graphUpload(CUgraphExec exec, CUstream hStream) {
  return onExec(exec, [&](Thread&, Executable& found) {
    return onStream(hStream, [&](Thread& thread, uint64_t stream) { return found.upload(thread, stream); });
  });
}

CUresult endExec(CUgraphExec exec) {
  return enterContext([&](Thread& thread) { return Executable::end(thread, toWire(exec)); });
}

CUresult execFlags(CUgraphExec exec, cuuint64_t* flags) {
  return onExec(exec, [&](Thread&, Executable& found) -> CUresult {
    if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *flags = found.flags() & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH;  // the driver tells no other
    return CUDA_SUCCESS;
  });
}

CUresult setNode(CUgraphExec exec, CUgraphNode node, const NodeRequest& request) {
  return onExec(exec, [&](Thread& thread, Executable& found) -> CUresult {
    NodeWork work;
    if (CUresult bad = describeNode(thread, request, work)) return bad;
    if (auto* child = std::get_if<ChildWork>(&work)) return found.setChild(thread, toWire(node), *child->graph);
    return found.set(thread, toWire(node), work);
  });
}

CUresult setEnabled(CUgraphExec exec, CUgraphNode node, unsigned enabled) {
  return onExec(exec, [&](Thread& thread, Executable& found) { return found.setEnabled(thread, toWire(node), enabled != 0); });
}

CUresult getEnabled(CUgraphExec exec, CUgraphNode node, unsigned* enabled) {
  return onExec(exec, [&](Thread&, Executable& found) -> CUresult {
    const bool* state = found.findEnabled(toWire(node));
    if (enabled == nullptr || state == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *enabled = *state;
    return CUDA_SUCCESS;
  });
}

CUresult updateExec(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo* info) {
  return onExec(exec, [&](Thread& thread, Executable& found) -> CUresult {
    auto with = thread.session.graphs.find(toWire(graph));
    if (info == nullptr || with == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Executable::Problem problem;
    CUresult result = found.update(thread, *with, problem);
    *info = {problem.update, fromWire<CUgraphNode>(problem.node), nullptr};
    return result;
  });
}

CUresult updateExec(CUgraphExec exec, CUgraph graph, CUgraphNode* errorNode, CUgraphExecUpdateResult* result) {
  CUgraphExecUpdateResultInfo info{};
  CUresult updated = updateExec(exec, graph, &info);
  if (errorNode != nullptr) *errorNode = info.errorNode;
  if (result != nullptr) *result = info.result;
  return updated;
}

}  // namespace vgpu::client
