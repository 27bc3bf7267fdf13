// Executable graphs (intercept/session/graph/executable.h).
#include "intercept/driver/shared.h"

namespace vgpu::client {

namespace {

template <typename Body>
CUresult onExec(CUgraphExec exec, Body&& body) {
  return enter([&](Thread& thread) -> CUresult {
    auto found = findExec(thread, exec);
    return found == nullptr ? CUDA_ERROR_INVALID_VALUE : body(thread, *found);
  });
}

constexpr unsigned long long knownFlags = CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD |
                                          CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;

}  // namespace

CUresult instantiate(CUgraphExec* exec, CUgraph graph, unsigned long long flags, CUstream upload,
                     const InstantiateReport& report) {
  Executable::Problem problem;
  CUresult result = enter([&](Thread& thread) -> CUresult {
    auto found = findGraph(thread, graph);
    if (exec == nullptr || found == nullptr || (flags & ~knownFlags) != 0) return CUDA_ERROR_INVALID_VALUE;
    uint64_t made = 0, stream = toWire(upload);
    if (CUresult bad = thread.resolve(api::Kind::STREAM, true, stream)) return bad;
    if (CUresult error = Executable::instantiate(thread, *found, flags, made, problem)) return error;
    *exec = fromWire<CUgraphExec>(made);
    bool uploads = (flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD) != 0;
    return uploads ? Executable::find(thread, made)->upload(thread, stream) : CUDA_SUCCESS;
  });
  if (report.node != nullptr) *report.node = fromWire<CUgraphNode>(problem.node);
  if (report.result != nullptr) *report.result = result == CUDA_SUCCESS ? CUDA_GRAPH_INSTANTIATE_SUCCESS : problem.instantiate;
  if (report.log != nullptr && report.logBytes != 0) *report.log = 0;
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

CUresult setNode(CUgraphExec exec, CUgraphNode node, const NodeRequest& request) {
  return onExec(exec, [&](Thread& thread, Executable& found) -> CUresult {
    const NodeWork* before = found.findWork(toWire(node));
    NodeWork work;
    if (CUresult bad = before == nullptr ? describeNode(thread, request, work) : describeChange(thread, request, *before, work)) return bad;
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

CUresult updateExec(CUgraphExec exec, CUgraph graph, CUgraphNode* errorNode, CUgraphExecUpdateResult* result, CUgraphNode* from) {
  return onExec(exec, [&](Thread& thread, Executable& found) -> CUresult {
    auto with = findGraph(thread, graph);
    if (with == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Executable::Problem problem;
    CUresult updated = found.update(thread, *with, problem);
    if (errorNode != nullptr) *errorNode = fromWire<CUgraphNode>(problem.node);
    if (result != nullptr) *result = problem.update;
    if (from != nullptr) *from = fromWire<CUgraphNode>(problem.from);
    return updated;
  });
}

}  // namespace vgpu::client
