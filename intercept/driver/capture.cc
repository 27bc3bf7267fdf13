// Capturing streams into graphs (intercept/session/graph/captures.h).
#include "intercept/driver/shared.h"

namespace vgpu::client {

namespace {

bool isMode(CUstreamCaptureMode mode) {
  return mode == CU_STREAM_CAPTURE_MODE_GLOBAL || mode == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL ||
         mode == CU_STREAM_CAPTURE_MODE_RELAXED;
}

// Runs `body` with the stream's handle as frames carry it, whether the stream is capturing or not.
template <typename Body>
CUresult onAnyStream(CUstream stream, Body&& body) {
  return enter([&](Thread& thread) -> CUresult {
    uint64_t handle = toWire(stream);
    if (CUresult bad = thread.resolve(api::Kind::STREAM, true, handle)) return bad;
    return body(thread, handle);
  });
}

}  // namespace

CUresult beginCapture(CUstream stream, CUgraph graph, const Dependencies& before, CUstreamCaptureMode mode) {
  return onAnyStream(stream, [&](Thread& thread, uint64_t handle) -> CUresult {
    Graphs& graphs = thread.session.graphs;
    auto into = graph == nullptr ? graphs.make() : findGraph(thread, graph);
    if (!isMode(mode) || into == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::vector<GraphEdge> tail;
    if (CUresult bad = edgesOf(graphs, *into, before, nullptr, tail)) return bad;
    return thread.session.captures.begin(thread, handle, mode, std::move(into), std::move(tail));
  });
}

CUresult endCapture(CUstream stream, CUgraph* graph) {
  return onAnyStream(stream, [&](Thread& thread, uint64_t handle) -> CUresult {
    if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *graph = nullptr;
    std::shared_ptr<Graph> captured;
    if (CUresult error = thread.session.captures.end(thread, handle, captured)) return error;
    auto& graphs = thread.session.graphs;
    *graph = fromWire<CUgraph>(captured->isBody ? graphs.lend(*captured) : graphs.give(captured));
    return CUDA_SUCCESS;
  });
}

CUresult captureInfo(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id, CUgraph* graph, const CUgraphNode** nodes,
                     const CUgraphEdgeData** edges, size_t* count) {
  return onAnyStream(stream, [&](Thread& thread, uint64_t handle) -> CUresult {
    if (status == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *status = CU_STREAM_CAPTURE_STATUS_NONE;
    if (!thread.session.captures.isActive()) return CUDA_SUCCESS;
    Captures::Info info;
    if (CUresult error = thread.session.captures.look(thread, handle, info)) return error;
    *status = info.status;
    if (info.status != CU_STREAM_CAPTURE_STATUS_ACTIVE) return CUDA_SUCCESS;
    if (nodes != nullptr && edges == nullptr && std::ranges::any_of(info.edges, hasPort)) return CUDA_ERROR_LOSSY_QUERY;
    if (id != nullptr) *id = info.id;
    if (graph != nullptr) *graph = fromWire<CUgraph>(thread.session.graphs.lend(*info.graph));
    if (nodes != nullptr) *nodes = info.nodes.data();
    if (edges != nullptr) *edges = info.edges.data();
    if (count != nullptr) *count = info.nodes.size();
    return CUDA_SUCCESS;
  });
}

CUresult setCaptureDependencies(CUstream stream, const Dependencies& nodes, unsigned flags) {
  return onAnyStream(stream, [&](Thread& thread, uint64_t handle) -> CUresult {
    Session& session = thread.session;
    if (flags != CU_STREAM_ADD_CAPTURE_DEPENDENCIES && flags != CU_STREAM_SET_CAPTURE_DEPENDENCIES) return CUDA_ERROR_INVALID_VALUE;
    Captures::Info info;
    if (CUresult error = session.captures.look(thread, handle, info)) return error;
    std::vector<GraphEdge> tail;
    if (info.graph != nullptr)
      if (CUresult bad = edgesOf(session.graphs, *info.graph, nodes, nullptr, tail)) return bad;
    return session.captures.setTail(handle, std::move(tail), flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES);
  });
}

CUresult exchangeCaptureMode(CUstreamCaptureMode* mode) {
  return enterAny([&](Thread& thread) -> CUresult {
    if (mode == nullptr || !isMode(*mode)) return CUDA_ERROR_INVALID_VALUE;
    std::swap(*mode, thread.captureMode);
    return CUDA_SUCCESS;
  });
}

}  // namespace vgpu::client
